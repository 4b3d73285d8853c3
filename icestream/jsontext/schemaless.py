"""JSON without schemas: objects stay text until somebody asks for a field. The converter of most topics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.api.nesting import MOST_LEVELS, is_too_deep
from icestream.jsontext.one_value import BROKEN, TOO_DEEP, plain_text
from icestream.records.column import Column
from icestream.records.json_source import JsonSource, Learned, parsed
from icestream.records.payloads import Payloads, is_utf8
from icestream.records.records import Converted, Failure
from icestream.records.rows import Indexes
from icestream.records.values import Text, Typed, Value, object_fields, typed

_LONGEST: Final = 1000
"""Digits of a number, as in Jackson. Python takes 4300."""
_TOO_LONG: Final = f"{BROKEN}Number value length exceeds the maximum allowed ({_LONGEST})"
_STEP: Final = 100
_DIGITS_AT_STEPS: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST // _STEP))
"""What is left of a long number if only every hundredth byte is looked at."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST + 1))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class PlainReader:
    """Reads values of one converter. Every value is checked, in the same pass that decodes what transforms
    asked for in earlier chunks: a check alone costs less than a microsecond."""

    learned: Learned = field(default_factory=Learned)

    def read(self, values: Sequence[bytes | None]) -> Converted:
        present = [value for value in values if value is not None]
        if len(present) == len(values):
            return self._read_present(present, None)
        null = np.fromiter((value is None for value in values), np.bool_, len(values))
        at = np.flatnonzero(~null)
        found = self._read_present(present, at) if present else Converted([])
        return Converted([(np.flatnonzero(null), None), *found.groups], found.failed)

    def _read_present(self, values: Sequence[bytes], at: Indexes | None) -> Converted:
        too_much = beyond_limits(values)
        # No decoder sees what is beyond the limits.
        within = [b"" if at in too_much else value for at, value in enumerate(values)] if too_much else values
        projected = self._projected(within)
        if not too_much and None not in projected:
            joined = Payloads.of(values)
            # The projection does not look into strings that it skips.
            if joined.is_utf8():
                source = JsonSource.projected(values, self.learned, projected, joined)
                return Converted([(at, object_fields(source))])
        return self._read_odd(values, np.arange(len(values)) if at is None else at, projected, too_much)

    def _projected(self, values: Sequence[bytes]) -> list[Any]:
        """What transforms asked for in each value before; None where it is no object, or broken."""
        decode, left = self.learned.projection().decode, iter(values)
        projected: list[Any] = []
        while length_hint(left):
            try:
                # As fast as C can: the iterator stands behind the one that failed.
                projected.extend(map(decode, left))
            except ValueError:  # msgspec's errors are ValueErrors
                projected.append(None)
        return projected

    def _read_odd(
        self, values: Sequence[bytes], at: Indexes, projected: list[Any], too_much: Mapping[int, str]
    ) -> Converted:
        good: list[int] = []
        odd: dict[int, bytes] = {}
        failed = {int(at[position]): Failure(why) for position, why in too_much.items()}
        for position, value in enumerate(values):
            if position in too_much:
                continue
            if projected[position] is not None and (value.isascii() or is_utf8(value)):
                good.append(position)
                continue
            try:
                text = plain_text(value)
                parsed(text or b"null")
                odd[position] = text
            except ValueError as error:
                failed[int(at[position])] = Failure(str(error))
        groups = self._parts(odd, at)
        if good:
            objects, found = [values[one] for one in good], [projected[one] for one in good]
            source = JsonSource.projected(objects, self.learned, found)
            groups.insert(0, (at[np.array(good)], object_fields(source)))
        return Converted(groups, failed)

    def _parts(self, odd: dict[int, bytes], at: Indexes) -> list[tuple[Indexes, Value]]:
        """Values that are no objects, or objects that need another spelling, by Java type."""
        texts = [text or b"null" for text in odd.values()]
        rows = at[np.fromiter(odd, np.int64, len(odd))]
        parts = typed(Text(JsonSource(texts, self.learned)), len(texts)) if texts else []
        return [(rows if part.rows is None else rows[part.rows], _value(part.value)) for part in parts]


def _value(found: Typed) -> Value:
    if isinstance(found, Column) and pa.types.is_null(found.values.type):
        return None
    return found


def beyond_limits(values: Sequence[bytes]) -> dict[int, str]:
    """Valid JSON that no reader could take apart, and why: refused before anybody relies on it. Only long
    values can be that, so only those are looked at."""
    found: dict[int, str] = {}
    for at, value in enumerate(values):
        if len(value) <= MOST_LEVELS:
            continue
        if is_too_deep(value):
            found[at] = TOO_DEEP
        elif _DIGITS_AT_STEPS.search(value[::_STEP]) and _LONG_NUMBER.search(_STRINGS.sub(b"", value)):
            found[at] = _TOO_LONG
    return found
