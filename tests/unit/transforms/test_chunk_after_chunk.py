"""What a chain has learned from earlier chunks, and who else is in a chunk, changes no record."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icestream.records.json_source import JsonSource, Learned
from icestream.records.plain import plain
from icestream.records.values import object_fields
from icestream.transforms.chain import Chain, chain_from
from tests.unit.transforms.groups import group

KAFKA: Final = "org.apache.kafka.connect.transforms."
STEPS: Final[list[dict[str, str]]] = [
    {"type": f"{KAFKA}Cast$Value", "spec": "a:string,b:int8"},
    {"type": f"{KAFKA}ExtractField$Value", "field": "a"},
    {"type": f"{KAFKA}ExtractField$Value", "field": 'a.q"', "field.syntax.version": "V2"},
    {"type": f"{KAFKA}Flatten$Value", "delimiter": "_"},
    {"type": f"{KAFKA}HoistField$Value", "field": "a"},
    {"type": f"{KAFKA}MaskField$Value", "fields": "a_b,b"},
    {"type": f"{KAFKA}ReplaceField$Value", "renames": 'b:a_b,q":b'},
    {"type": f"{KAFKA}ReplaceField$Value", "include": 'a,q",a_b'},
]
NAMES: Final = st.sampled_from(["a", "b", "a_b", 'q"'])
SCALARS: Final = st.none() | st.booleans() | st.integers(-300, 300) | st.sampled_from([0.5, "x", "7"])
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
CHUNK: Final = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6)


def chain_of(steps: list[dict[str, str]]) -> Chain:
    config = {"transforms": ",".join(f"t{at}" for at in range(len(steps)))}
    for at, step in enumerate(steps):
        config |= {f"transforms.t{at}.{key}": text for key, text in step.items()}
    return chain_from(config)


def outcome(chain: Chain, rows: list[Any], learned: Learned) -> list[Any]:
    texts = [json.dumps(row).encode() for row in rows]
    run = chain.run([group(object_fields(JsonSource(texts, learned)), len(texts))])
    found: dict[int, Any] = dict(run.failed)
    for records in run.records:
        values = [None] * len(records) if records.value is None else plain(records.value, len(records))
        found |= dict(zip(records.rows.tolist(), values, strict=True))
    return [found[row] for row in range(len(rows))]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), st.lists(CHUNK, min_size=1, max_size=3))
def test_chunk_after_chunk(steps: list[dict[str, str]], chunks: list[list[Any]]) -> None:
    kept, learned = chain_of(steps), Learned()
    for rows in chunks:
        alone = [outcome(chain_of(steps), [row], Learned())[0] for row in rows]
        assert outcome(kept, rows, learned) == alone
