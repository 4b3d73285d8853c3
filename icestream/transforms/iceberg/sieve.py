"""A group of records that loses those which fail, check by check: the first check that fails a record names
the reason, as the first exception does in Java."""

from __future__ import annotations

from typing import Final

import numpy as np

from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Flags

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
