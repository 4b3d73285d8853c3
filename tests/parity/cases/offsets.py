"""Offsets: read, altered and reset, for a source and a sink, in every state, with every shape."""

from tests.parity.table import (
    DELETE,
    GET,
    PATCH,
    PUT,
    RUNNING,
    SINK,
    SOURCE,
    Request,
    Scenario,
    create,
)

_OFFSETS = "/connectors/c/offsets"
_FILE = {"filename": "@FOLDER@/in.txt"}
_TOPIC = {"kafka_topic": "parity-in", "kafka_partition": 0}

_SHAPES = [
    {},
    {"offsets": None},
    {"offsets": []},
    {"offsets": {}},
    {"offsets": "x"},
    {"offsets": [None]},
    {"offsets": ["x"]},
    {"offsets": [{}]},
    {"offsets": [{"partition": None, "offset": None}]},
    {"offsets": [{"partition": {}, "offset": {}}]},
    {"offsets": [{"partition": "x", "offset": {}}]},
    {"offsets": [{"partition": {"a": 1}, "offset": 7}]},
    {"offsets": [{"partition": {"a": 1}}]},
    {"offsets": [{"offset": {"position": 1}}]},
    {"offsets": [{"partition": {"a": 1}, "offset": {}, "more": 1}]},
    {"offsets": [], "more": 1},
    {"other": []},
]


def _alter(*pairs: tuple[object, object], **more: str) -> Request:
    entries = [{"partition": partition, "offset": offset} for partition, offset in pairs]
    return PATCH(_OFFSETS, {"offsets": entries}, **more)


SCENARIOS = [
    Scenario(
        "shapes",
        (create(initial_state="STOPPED"), RUNNING, *(PATCH(_OFFSETS, shape) for shape in _SHAPES)),
    ),
    Scenario(
        "not stopped",
        (
            create(),
            RUNNING,
            GET(_OFFSETS),
            DELETE(_OFFSETS),
            _alter((_FILE, {"position": 1})),
            PUT("/connectors/c/pause"),
            RUNNING,
            DELETE(_OFFSETS),
            _alter((_FILE, {"position": 1})),
        ),
    ),
    Scenario(
        "of a source",
        (
            create(initial_state="STOPPED"),
            RUNNING,
            GET(_OFFSETS),
            DELETE(_OFFSETS),
            _alter((_FILE, {"position": 0})),
            GET(_OFFSETS),
            _alter((_FILE, {"position": 3})),
            GET(_OFFSETS),
            _alter((_FILE, {"position": "x"})),
            _alter((_FILE, {"position": -1})),
            _alter((_FILE, {"other": 1})),
            _alter((_FILE, {})),
            _alter(({"filename": 7}, {"position": 1})),
            _alter(({"other": "x"}, {"position": 1})),
            _alter(({}, {"position": 1})),
            _alter((None, {"position": 1})),
            _alter((_FILE, None)),
            GET(_OFFSETS),
            _alter((_FILE, {"position": 1}), ({"filename": "@FOLDER@/other.txt"}, {"position": 2})),
            _alter((_FILE, {"position": 1}), (_FILE, {"position": 2})),
            GET(_OFFSETS),
            DELETE(_OFFSETS),
            GET(_OFFSETS),
        ),
    ),
    Scenario(
        "of a sink",
        (
            create(config=SINK, initial_state="STOPPED"),
            RUNNING,
            GET(_OFFSETS),
            _alter((_TOPIC, {"kafka_offset": 2})),
            GET(_OFFSETS),
            _alter(({**_TOPIC, "kafka_partition": "0"}, {"kafka_offset": "3"})),
            GET(_OFFSETS),
            _alter((_TOPIC, {"kafka_offset": "x"})),
            _alter((_TOPIC, {"kafka_offset": None})),
            _alter((_TOPIC, {"kafka_offset": -1})),
            _alter((_TOPIC, {"kafka_offset": 1.5})),
            _alter((_TOPIC, {"offset": 1})),
            _alter((_TOPIC, {})),
            _alter((_TOPIC, {"kafka_offset": 1, "more": 1})),
            _alter(({"kafka_topic": "parity-in"}, {"kafka_offset": 1})),
            _alter(({"kafka_partition": 0}, {"kafka_offset": 1})),
            _alter(({**_TOPIC, "kafka_partition": "x"}, {"kafka_offset": 1})),
            _alter(({**_TOPIC, "kafka_partition": -1}, {"kafka_offset": 1})),
            _alter(({**_TOPIC, "kafka_topic": None}, {"kafka_offset": 1})),
            _alter(({**_TOPIC, "more": 1}, {"kafka_offset": 1})),
            _alter((None, {"kafka_offset": 1})),
            GET(_OFFSETS),
            _alter((_TOPIC, None)),
            GET(_OFFSETS, differs="null-offset"),
            _alter((_TOPIC, {"kafka_offset": 1})),
            DELETE(_OFFSETS),
            GET(_OFFSETS),
            DELETE(_OFFSETS),
        ),
    ),
    Scenario(
        "of a stopped connector that starts again",
        (
            create(config=SOURCE),
            RUNNING,
            PUT("/connectors/c/stop"),
            RUNNING,
            DELETE(_OFFSETS),
            PUT("/connectors/c/resume"),
            RUNNING,
            DELETE(_OFFSETS),
        ),
    ),
]
