"""Records as the tasks hand them to a sink, and the objects that a layout makes of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icestream.api.offsets import Partition
from icestream.connectors.s3.layout import layout_of
from icestream.connectors.s3.objects import ObjectPart, Taken, TopicPartitionObjects
from icestream.connectors.s3.settings import parsed
from icestream.converters.json_converter import JsonConverter
from icestream.records.column import Column
from icestream.records.records import Header, Records
from icestream.records.schema import ConnectSchema
from icestream.records.values import Value

JSON = "io.confluent.connect.s3.format.json.JsonFormat"
ORDERS = Partition("orders", 3)


def group(
    value: Value,
    rows: Sequence[int],
    *,
    topic: str = "orders",
    key: Value = None,
    headers: tuple[Header, ...] = (),
    times: Sequence[int | None] | None = None,
    first: int = 0,
) -> Records:
    index = np.array(rows, np.int64)
    return Records(
        rows=index,
        topic=topic,
        partitions=np.full(len(index), 3),
        timestamps=pa.array(times if times is not None else [1_000 * row for row in rows], pa.int64()),
        key=key,
        value=value,
        headers=headers,
        offsets=index + first,
    )


def json_groups(values: Sequence[Any], **facts: Any) -> list[Records]:
    """Schemaless JSON; None is a tombstone, bytes are text as it is."""
    texts = [
        None if one is None else one if isinstance(one, bytes) else json.dumps(one).encode() for one in values
    ]
    converted = JsonConverter.configured({"schemas.enable": "false"}, is_key=False).to_connect(
        "orders", texts
    )
    assert not converted.failed
    times = facts.pop("times", None)
    groups = []
    for found, value in converted.groups:
        rows = np.arange(len(values)) if found is None else found
        mine = None if times is None else [times[row] for row in rows.tolist()]
        groups.append(group(value, rows.tolist(), times=mine, **facts))
    return groups


def structs(schema: ConnectSchema, values: Sequence[Mapping[str, Any] | Any]) -> Column:
    return Column(pa.array(values, schema.arrow_type), schema)


class Bucket:
    """What is under each key, in the order of completion."""

    def __init__(self) -> None:
        self.under_way: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self.facts: dict[str, tuple[int, int, int]] = {}

    def put(self, parts: Sequence[ObjectPart]) -> None:
        for part in parts:
            assert part.key not in self.objects, "an object goes on after its end"
            data = self.under_way.pop(part.key, b"") + part.data
            if part.is_last:
                self.objects[part.key] = data
                self.facts[part.key] = (part.first_offset, part.last_offset, part.records)
            else:
                self.under_way[part.key] = data

    def lines(self) -> dict[str, list[Any]]:
        found = {}
        for key, data in self.objects.items():
            text = gzip.decompress(data) if key.endswith(".gz") else data
            assert text.endswith(b"\n")
            found[key] = [json.loads(line) for line in text.splitlines()]
        return found


def config_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a config, with what every config has."""
    given = {"s3.bucket.name": "lake", "format.class": JSON, "flush.size": 1000, **settings}
    return {key: _text(value) for key, value in given.items()}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def written(
    chunks: Sequence[Sequence[Records]],
    settings: Mapping[str, Any],
    *,
    partition: Partition = ORDERS,
    now_ms: int = 0,
) -> tuple[Bucket, list[Taken]]:
    layout = layout_of(parsed(config_of(settings)))
    objects, bucket, all_taken = TopicPartitionObjects(layout, partition), Bucket(), []
    for chunk in chunks:
        taken = objects.take(chunk, now_ms)
        bucket.put(taken.parts)
        all_taken.append(taken)
    bucket.put(list(objects.close()))
    assert not bucket.under_way
    return bucket, all_taken
