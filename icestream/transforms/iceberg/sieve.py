"""Groups that part by the types of what is at hand, and lose the records that fail, check by check: the first
check that fails a record names the reason, as the first exception does in Java."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Flags
from icestream.records.values import Fields, Node, Typed
from icestream.transforms.picked_fields import Picked, got, picked
from icestream.transforms.side import Side

NULL_POINTER: Final = "java.lang.NullPointerException"


def null_result(called: str, method: str) -> Failure:
    """What Java says where it calls a method of a null that another method returned."""
    return Failure(f'Cannot invoke "{called}" because the return value of "{method}" is null', NULL_POINTER)


class Sieve:
    def __init__(self, records: Records) -> None:
        self.records = records
        self.failed: dict[int, Failure] = {}

    def fail(self, bad: Flags, why: Failure) -> bool:
        """Whether records are left."""
        if bad.any():
            self.failed.update(dict.fromkeys(self.records.rows[bad].tolist(), why))
            self.records = self.records.take(np.flatnonzero(~bad))
        return len(self.records) > 0

    def fail_all(self, why: Failure) -> Applied:
        self.fail(np.ones(len(self.records), np.bool_), why)
        return Applied([], self.failed)

    def done(self, records: Records) -> Applied:
        return Applied([records], self.failed)


def parted(records: Records, nodes: Mapping[str, Node | None]) -> list[Records]:
    """Groups in which each node has one Java type; they have the nodes for their value, see `held`."""
    groups = picked(replace(records, value=Fields(nodes, None, len(records))), Side.VALUE, list(nodes))
    return [replace(one.records, value=_fields(nodes, one)) for one in groups]


def _fields(names: Iterable[str], group: Picked) -> Fields:
    return Fields(dict(zip(names, map(got, group.values), strict=True)), None, len(group.records))


def held(records: Records, name: str) -> Typed:
    """One of the nodes of a parted group."""
    assert isinstance(records.value, Fields)
    node = records.value.named[name]
    assert isinstance(node, Typed)
    return node
