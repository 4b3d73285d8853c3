"""Plugins, their definitions, and validation of configs."""

from tests.parity.table import GET, PUT, SINK, SOURCE, Scenario, each

_SOURCE_CLASS = SOURCE["connector.class"]
_SINK_CLASS = SINK["connector.class"]
_NAMED = {"name": "c"}

_CONNECTOR_NAMES = [
    _SOURCE_CLASS,
    "FileStreamSourceConnector",
    "FileStreamSource",
    _SINK_CLASS,
    "FileStreamSinkConnector",
    "FileStreamSink",
]
_OTHER_NAMES = [
    "Connector",
    "filestreamsource",
    "Source",
    "org.apache.kafka.connect.file.FileStreamSource",
    "JsonConverter",
    "org.apache.kafka.connect.json.JsonConverter",
    "StringConverter",
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "SimpleHeader",
    "Json",
    "InsertField$Value",
    "org.apache.kafka.connect.converters.LongConverter",
    "DoubleConverter",
    "Float",
    "a%2Fb",
    "%20",
    "No.Such",
]

_BAD_VALUES: list[dict[str, object]] = [
    {"tasks.max": "0"},
    {"tasks.max": "-1"},
    {"tasks.max": "abc"},
    {"tasks.max": ""},
    {"tasks.max": "1.5"},
    {"tasks.max": "99999999999"},
    {"tasks.max": " 2 "},
    {"tasks.max": None},
    {"tasks.max.enforce": "maybe"},
    {"tasks.max.enforce": "TRUE"},
    {"name": ""},
    {"name": "a\nb"},
    {"name": None},
    {"key.converter": "No.Such"},
    {"key.converter": ""},
    {"key.converter": "org.apache.kafka.connect.json.JsonConverter"},
    {"key.converter": "JsonConverter"},
    {"value.converter": "org.apache.kafka.connect.storage.StringConverter"},
    {"header.converter": "No.Such"},
    {"config.action.reload": "x"},
    {"config.action.reload": "NONE"},
    {"errors.tolerance": "some"},
    {"errors.tolerance": "ALL"},
    {"errors.tolerance": ""},
    {"errors.retry.timeout": "x"},
    {"errors.retry.timeout": "-2"},
    {"errors.retry.delay.max.ms": "-1"},
    {"errors.log.enable": "1"},
    {"errors.log.include.messages": "yes"},
    {"no.such.key": "x"},
    {"transforms": ""},
    {"predicates": ""},
]
_BAD_SOURCE: list[dict[str, object]] = [
    {"topic": ""},
    {"file": ""},
    {"batch.size": "x"},
    {"batch.size": "-5"},
    {"batch.size": "99999999999"},
    {"exactly.once.support": "x"},
    {"exactly.once.support": "required"},
    {"exactly.once.support": "REQUESTED"},
    {"transaction.boundary": "x"},
    {"transaction.boundary": "CONNECTOR"},
    {"transaction.boundary": "interval"},
    {"transaction.boundary.interval.ms": "0"},
    {"transaction.boundary.interval.ms": "x"},
    {"offsets.storage.topic": ""},
    {"offsets.storage.topic": "o2"},
    {"topic.creation.groups": ""},
]
_BAD_SINK: list[dict[str, object]] = [
    {"topics": ""},
    {"topics": " "},
    {"topics": None},
    {"topics": "a,b , c"},
    {"topics": "a,,b"},
    {"topics": "a,a"},
    {"topics.regex": "x.*"},
    {"topics": "", "topics.regex": "x.*"},
    {"topics": None, "topics.regex": "x.*"},
    {"topics": None, "topics.regex": ""},
    {"errors.deadletterqueue.topic.name": "parity-in"},
    {"topics": None, "topics.regex": "x.*", "errors.deadletterqueue.topic.name": "xy"},
    {"errors.deadletterqueue.topic.replication.factor": "x"},
    {"errors.deadletterqueue.context.headers.enable": "x"},
    {"errors.deadletterqueue.topic.name": "dlq", "errors.tolerance": "all"},
    {"consumer.override.no.such": "5"},
]


_JSON = "org.apache.kafka.connect.json.JsonConverter"
_STRING = "org.apache.kafka.connect.storage.StringConverter"
_CONVERTERS: list[dict[str, object]] = [
    {"key.converter": _JSON},
    {"value.converter": _STRING},
    {"header.converter": _JSON},
    {"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
    {"value.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
    {"value.converter": "org.apache.kafka.connect.converters.LongConverter"},
    {"key.converter": "IntegerConverter", "header.converter": "Boolean"},
    {"value.converter": "ShortConverter", "value.converter.plugin.version": "4.3.1"},
    {"value.converter": _JSON, "value.converter.decimal.format": "NUMERIC"},
    {"value.converter": _JSON, "value.converter.decimal.format": "x"},
    {"value.converter": _JSON, "value.converter.schema.content": '{"type": "string"}'},
    {"value.converter": _STRING, "value.converter.converter.encoding": "UTF-16"},
    {"key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
    {"key.converter": _JSON, "key.converter.schemas.enable": "x"},
    {
        "key.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "key.converter.schemas.cache.size": "7",
    },
    {"key.converter": _JSON, "value.converter": _JSON},
    {"key.converter.schemas.enable": "false"},
    {"key.converter": _JSON, "key.converter.plugin.version": "4.3.1"},
    {"key.converter.plugin.version": "9"},
    {"connector.plugin.version": "4.3.1"},
]


def _validate(plugin: str, config: object, **more: str):  # type: ignore[no-untyped-def]
    return PUT(f"/connector-plugins/{plugin}/config/validate", config, **more)


SCENARIOS = [
    *each(
        "list",
        GET("/connector-plugins"),
        GET("/connector-plugins?connectorsOnly=true"),
        GET("/connector-plugins?connectorsOnly=false"),
        GET("/connector-plugins?connectorsOnly=x"),
        GET("/connector-plugins?connectorsOnly="),
        GET("/connector-plugins?connectorsOnly"),
        GET("/connector-plugins?x=y"),
    ),
    *each("definition", *(GET(f"/connector-plugins/{name}/config") for name in _CONNECTOR_NAMES)),
    *each("definition of another", *(GET(f"/connector-plugins/{name}/config") for name in _OTHER_NAMES)),
    *each("good", *(_validate(name, {**SOURCE, **_NAMED}) for name in _CONNECTOR_NAMES[:3])),
    *each("good", *(_validate(name, {**SINK, **_NAMED}) for name in _CONNECTOR_NAMES[3:])),
    *each(
        "class",
        _validate("FileStreamSource", {}),
        _validate("FileStreamSource", _NAMED),
        _validate("FileStreamSource", {"connector.class": ""}),
        _validate("FileStreamSource", {"connector.class": None}),
        _validate("FileStreamSource", {"connector.class": _SOURCE_CLASS}),
        _validate("FileStreamSource", {"connector.class": "FileStreamSource", **_NAMED}),
        _validate("FileStreamSource", {"connector.class": "FileStreamSourceConnector", **_NAMED}),
        _validate("FileStreamSource", {"connector.class": "No.Such", **_NAMED}),
        _validate("FileStreamSource", {**SINK, **_NAMED}),
        _validate("FileStreamSink", {"connector.class": _SINK_CLASS}),
        _validate("Source", {**SOURCE, **_NAMED}),
        _validate("e", {**SOURCE, **_NAMED}),
        _validate("Connector", {**SOURCE, **_NAMED}),
        _validate("No.Such", {"connector.class": "No.Such", **_NAMED}),
        _validate("No.Such", {}),
        _validate("JsonConverter", {"connector.class": "org.apache.kafka.connect.json.JsonConverter"}),
        _validate("%20", {}),
    ),
    *each("value", *(_validate("FileStreamSource", {**SOURCE, **_NAMED, **bad}) for bad in _BAD_VALUES)),
    *each("source", *(_validate("FileStreamSource", {**SOURCE, **_NAMED, **bad}) for bad in _BAD_SOURCE)),
    *each("sink", *(_validate("FileStreamSink", {**SINK, **_NAMED, **bad}) for bad in _BAD_SINK)),
    *each("converter", *(_validate("FileStreamSink", {**SINK, **_NAMED, **more}) for more in _CONVERTERS)),
    *each(
        "in other words",
        *(
            _validate("FileStreamSink", {**SINK, **_NAMED, **more}, differs="wrong-version")
            for more in (
                {"key.converter": _JSON, "key.converter.plugin.version": "9"},
                {"connector.plugin.version": "9"},
                {"connector.plugin.version": "x"},
                {"connector.plugin.version": ""},
            )
        ),
        *(
            _validate("FileStreamSink", {**SINK, **_NAMED, **more}, differs="own-opinion")
            for more in (
                {"value.converter": _JSON, "value.converter.schema.content": "{}"},
                {"value.converter": _STRING, "value.converter.converter.encoding": "no-such"},
            )
        ),
        _validate("FileStreamSource", {**SOURCE, **_NAMED, "topic": None}, differs="null-values"),
        _validate("FileStreamSource", {**SOURCE, **_NAMED, "file": None}, differs="null-values"),
        _validate(
            "FileStreamSource",
            {**SOURCE, **_NAMED, "value.converter": "java.lang.String"},
            differs="java-classes",
        ),
        _validate(
            "FileStreamSink", {**SINK, **_NAMED, "topics": "", "topics.regex": "["}, differs="regex-words"
        ),
        _validate(
            "FileStreamSource",
            {**SOURCE, **_NAMED, "producer.override.linger.ms": "5"},
            differs="client-definitions",
        ),
        _validate(
            "FileStreamSource",
            {**SOURCE, **_NAMED, "producer.override.linger.ms": "x"},
            differs="client-errors",
        ),
        _validate(
            "FileStreamSink",
            {**SINK, **_NAMED, "consumer.override.fetch.max.bytes": "5000"},
            differs="client-definitions",
        ),
    ),
    Scenario(
        "several errors",
        (
            _validate("FileStreamSource", {**SOURCE, "tasks.max": "x", "batch.size": "y", "topic": ""}),
            PUT("/connectors/c/config", {**SOURCE, "tasks.max": "x", "batch.size": "y", "topic": ""}),
            PUT("/connectors/c/config", {**SINK, "tasks.max": "x", "topics": ""}),
            GET("/connectors"),
        ),
    ),
    *each(
        "refused as validated", *(PUT("/connectors/c/config", {**SOURCE, **bad}) for bad in _BAD_VALUES[:4])
    ),
    *each("refused as validated", *(PUT("/connectors/c/config", {**SINK, **bad}) for bad in _BAD_SINK[:3])),
]
