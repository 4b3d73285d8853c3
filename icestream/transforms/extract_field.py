"""`ExtractField`: one field, at the top or nested, takes the place of the whole key or value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Node, Text, Typed, Value, typed
from icestream.transforms.failures import is_null, not_a_map, not_a_struct, refused_setting
from icestream.transforms.groups import Side, all_failed, merged
from icestream.transforms.structs import read_fields

_PURPOSE: Final = "field extraction"
_NESTED: Final = "nested field access"
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
_NO_STEPS: Final = Failure("fromIndex(0) > toIndex(-1)", _ILLEGAL_ARGUMENT)
_NO_STRUCT: Final = Failure("Cannot look up fields on non-struct type")


@dataclass(frozen=True)
class ExtractField:
    side: Side
    text: str
    path: tuple[str, ...]
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        text = settings["field"]
        path = field_path(text, settings["field.syntax.version"])
        return cls(side, text, path, settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if isinstance(value, Column) and value.schema is not None:
            return self._with_schema(records, value, value.schema)
        if is_null(value):
            return Applied([self.side.put(records, None)])
        if not isinstance(value, Fields):
            return all_failed(records, not_a_map(value, _PURPOSE))
        if not self.path:
            return all_failed(records, _NO_STEPS)
        return self._extracted(records, value, self.path)

    def _extracted(self, records: Records, fields: Fields, path: tuple[str, ...]) -> Applied:
        """What the path leads to, in groups of one Java type each."""
        node = _straight(fields, path)
        if node is not None:
            return self._parted(records, node, ())
        return self._parted(records, fields.get(path[0]), path[1:])

    def _parted(self, records: Records, node: Node | None, path: tuple[str, ...]) -> Applied:
        outcomes = []
        for part in typed(node, len(records)):
            group = records if part.rows is None else records.take(part.rows)
            if not path:
                outcomes.append(Applied([self.side.put(group, _whole(part.value))]))
            elif isinstance(part.value, Fields):
                outcomes.append(self._extracted(group, part.value, path))
            else:
                outcomes.append(self._ended(group, part.value))
        return merged(outcomes)

    def _ended(self, records: Records, value: Typed) -> Applied:
        """Where the path does not lead on: a null has nothing to find, and in what is no map nothing may be
        looked for."""
        nulls = value.nulls if isinstance(value, Column) else np.zeros(len(records), np.bool_)
        found, wrong = np.flatnonzero(nulls), np.flatnonzero(~nulls)
        nothing = [self.side.put(records.take(found), None)] if len(found) else []
        if not len(wrong):
            return Applied(nothing)
        refused = all_failed(records.take(wrong), not_a_map(value.take(wrong), _NESTED))
        return merged([Applied(nothing), refused])

    def _with_schema(self, records: Records, value: Column, schema: ConnectSchema) -> Applied:
        if schema.kind is not Kind.STRUCT and not is_null(value):
            return all_failed(records, not_a_struct(value, _PURPOSE))
        if not self.path:
            return all_failed(records, _NO_STEPS)
        for position, name in enumerate(self.path):
            if schema.kind is not Kind.STRUCT:
                return all_failed(records, _NO_STRUCT)
            if name not in schema:
                return all_failed(records, Failure(f"Unknown field: {self.text}", _ILLEGAL_ARGUMENT))
            last = position == len(self.path) - 1
            defaults = self.replace_null_with_default or not last
            value, schema = read_fields(value, defaults=defaults)[name], schema[name]
        return Applied([self.side.put(records, value)])


def _whole(value: Typed) -> Value:
    """A field as the whole: a key that was absent is null there."""
    if not isinstance(value, Column):
        return value
    return None if is_null(value) else replace(value, absent=None)


def _straight(fields: Fields, path: tuple[str, ...]) -> Text | None:
    """The end of a nested path in undecoded text, if it is there in every row: then nothing on the way to it
    has to be decoded."""
    if len(path) == 1 or path[0] in fields.named or fields.rest is None:
        return None
    text = fields.rest
    for name in path:
        text = text.child(name)
    return None if any(value is ABSENT for value in text.objects()) else text


def field_path(text: str, version: str) -> tuple[str, ...]:
    """The names from the top to the field: one name (V1), or dots between names and backticks around names
    with dots (V2)."""
    if version.upper() == "V1":
        return (text,)
    steps, at = [], 0
    while at < len(text):
        step, at = _quoted(text, at) if text[at] == "`" else _plain(text, at)
        steps.append(step)
    if text.endswith("."):
        steps.append("")
    return tuple(steps)


def _plain(text: str, start: int) -> tuple[str, int]:
    """A step up to the next dot, and where the one after it begins."""
    end = text.find(".", start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + 1)


def _quoted(text: str, start: int) -> tuple[str, int]:
    """A step in backticks. A backtick ends it only before a dot or at the end of the path; there, a
    backslash before the backtick makes it part of the name."""
    step, begin, at = "", start + 1, start + 1
    while (at := text.find("`", at)) >= 0:
        escaped = text[at - 1] == "\\"
        last = at == len(text) - 1
        if last and escaped:
            break
        if last:
            return step + text[begin:at], len(text)
        if text[at + 1] == ".":
            if not escaped:
                return step + text[begin:at], at + 2
            step += text[begin : at - 1] + "`"
            begin = at + 1
        at += 1
    problem = (
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
        f"position {start} to escape it"
    )
    raise refused_setting("field", problem)
