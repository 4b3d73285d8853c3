"""Folders of partitions, whatever values records bring."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from icestream.connectors.iceberg.files.partitions import Partitioner

SCHEMA = Schema(*(NestedField(number, f"s{number}", StringType()) for number in (1, 2, 3, 4)))


def folders(rows: list[tuple[str, ...]]) -> list[str]:
    spec = PartitionSpec(
        *(PartitionField(number, 999 + number, IdentityTransform(), f"s{number}") for number in (1, 2, 3, 4))
    )
    columns = zip(*rows, strict=True)
    table = pa.table({f"s{number}": list(column) for number, column in enumerate(columns, 1)})
    return [group.value.path for group in Partitioner(SCHEMA, spec).split(table) if group.value]


def test_a_value_that_is_too_long_for_a_path_has_a_folder_all_the_same() -> None:
    """Otherwise one record stops its connector: no store could ever take the file."""
    short, long, other, many = folders(
        [("a", "b", "c", "d"), ("x" * 5000, "", "", ""), ("x" * 5001, "", "", ""), ("y" * 150,) * 4]
    )
    assert short == "s1=a/s2=b/s3=c/s4=d"
    assert len({long, other, many}) == 3
    assert all(len(one) == 37 and one.startswith("long-") for one in (long, other, many))


def test_no_value_leads_out_of_the_table() -> None:
    for folder in folders([("../../x", "..", "/etc", "a/b")]):
        assert folder.count("/") == 3 and "s1=..%2F..%2Fx/" in folder
