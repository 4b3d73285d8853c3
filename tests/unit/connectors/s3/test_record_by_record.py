"""All of it together against the rules read literally: random records under random settings, one by one.

What a reader of the bucket finds is compared: keys, the records of each object in their order, the order in
which objects are complete, and which records are dead letters.
"""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from icestream.connectors.s3.rotation import RotationRules
from tests.unit.connectors.s3.rotation_model import Model, Row
from tests.unit.connectors.s3.topic_records import json_groups, written

CLASSES = "io.confluent.connect.storage.partitioner."
NOON = 1_772_971_200_000
VALUES = st.one_of(
    st.fixed_dictionaries({"k": st.sampled_from(["a", "b/c", None, 7, True, 1.5]), "n": st.integers(0, 9)}),
    st.sampled_from(["text", 5, None]),
)
RECORDS = st.lists(
    st.tuples(VALUES, st.one_of(st.none(), st.integers(NOON, NOON + 7_200_000))), min_size=1, max_size=80
)
CONFIGS = st.fixed_dictionaries(
    {
        "flush.size": st.integers(1, 12),
        "partitioner.class": st.sampled_from(["Default", "Field", "Hourly", "TimeBased"]),
        "rotate.interval.ms": st.sampled_from([-1, 600_000, 3_600_000]),
        "rotate.file.on.partition.change": st.booleans(),
        "behavior.on.null.values": st.just("ignore"),
        "report.null.values.to.dlq": st.booleans(),
    }
)
BY_TIME = {"locale": "en", "timezone": "UTC", "timestamp.extractor": "Record"}
TEN_MINUTES = {"partition.duration.ms": 600_000, "path.format": "'at'=HHmm"}


def folder_of(value: Any, time: int | None, name: str) -> str | None:
    """None: there is none, so the record is a dead letter."""
    if name == "Default":
        return "partition=3"
    if name == "Field":
        if not isinstance(value, dict) or isinstance(value["k"], float):
            return None
        shown = "null" if value["k"] is None else value["k"]
        return f"k={'true' if value['k'] is True else shown}"
    if time is None:
        return None
    at = dt.datetime.fromtimestamp(time / 1000, dt.UTC)
    if name == "Hourly":
        return f"{at:year=%Y/month=%m/day=%d/hour=%H}"
    return f"at={at:%H}{at.minute // 10 * 10:02}"


def expected(
    records: list[tuple[Any, int | None]], config: dict[str, Any]
) -> tuple[dict[str, list[Any]], set[int]]:
    """Objects in the order of their completion, and the dead letters."""
    name = config["partitioner.class"]
    by_time = name in ("Hourly", "TimeBased")
    rules = RotationRules(
        config["flush.size"], config["rotate.interval.ms"], config["rotate.file.on.partition.change"]
    )
    model = Model(rules, lambda began, schema: True)
    objects: dict[tuple[int, str], tuple[str, list[Any]]] = {}
    letters: set[int] = set()
    folders: list[str] = []
    for offset, (value, time) in enumerate(records):
        folder = None if value is None else folder_of(value, time, name)
        if folder is None:
            if value is not None or config["report.null.values.to.dlq"]:
                letters.add(offset)
            continue
        if folder not in folders:
            folders.append(folder)
        number = model.put(Row(folders.index(folder), time=time if by_time else None))
        key = f"topics/orders/{folder}/orders+3+{offset:010}.json"
        objects.setdefault((number, folder), (key, []))[1].append(value)
    # Rounds are complete one after the other, and in each the objects in the order of their opening.
    ordered = sorted(objects.items(), key=lambda item: item[0][0])
    return dict(made for _, made in ordered), letters


@given(RECORDS, CONFIGS, st.lists(st.integers(1, 79), max_size=3))
@settings(max_examples=150, deadline=None)
def test_a_reader_finds_what_the_rules_say(
    records: list[tuple[Any, int | None]], config: dict[str, Any], cuts: list[int]
) -> None:
    bounds = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    chunks = [
        json_groups(
            [value for value, _ in records[low:high]],
            times=[time for _, time in records[low:high]],
            first=low,
        )
        for low, high in pairwise(bounds)
    ]
    name = config["partitioner.class"]
    mine = {**config, "partitioner.class": f"{CLASSES}{name}Partitioner", "partition.field.name": ["k"]}
    bucket, taken = written(chunks, {**mine, **BY_TIME, **TEN_MINUTES})
    objects, letters = expected(records, config)
    assert list(bucket.lines().items()) == list(objects.items())
    assert {low + row for low, one in zip(bounds, taken, strict=False) for row in one.failed} == letters
