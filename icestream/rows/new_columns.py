"""Columns that records bring and a table lacks: their types, inferred from JSON, and how many there may be.

Inference follows Java's table sinks: whole numbers are long, fractions double, objects structs; a null, an
empty object and an empty list tell nothing and make no column. A record with thousands of keys is a mistake
or an attack: every reader of the table would pay for its columns for ever. Used by `schema_drift`, which
gathers the columns, and by those who add them to the table.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from icestream.api.config import Config
from icestream.api.connector_settings import NEW_COLUMNS, NEW_NAMES
from icestream.records.json_source import parsed

Path = tuple[str, ...]

LIST_ELEMENT = "element"
MAP_VALUE = "value"
NO_LONGER_REQUIRED = "(optional)"
"""Ends the path of a field that the table requires and should not; its type is `pa.null()`, which no field
has."""
_MOST_LEVELS = 30
"""What is nested deeper becomes text: readers of tables recurse into types."""


def new_fields(payloads: Iterable[bytes], schema: pa.Schema) -> dict[Path, pa.DataType]:
    """Every field that the schema lacks, by path; the type fits all payloads given."""
    found: dict[Path, pa.DataType] = {}
    for payload in payloads:
        value = parsed(payload)
        for field_path, kind in missing_in(value, pa.struct(list(schema)), ()):
            found[field_path] = merged(found[field_path], kind) if field_path in found else kind
    return found


def missing_in(value: Any, kind: pa.DataType, path: Path) -> Iterable[tuple[Path, pa.DataType]]:
    """The fields of one value that its type lacks."""
    if isinstance(value, dict) and pt.is_struct(kind):
        for name, item in value.items():
            position = kind.get_field_index(name)
            if position >= 0:
                yield from missing_in(item, kind.field(position).type, (*path, name))
            elif (inferred := inferred_type(item, len(path))) is not None:
                yield (*path, name), inferred
    elif isinstance(value, dict) and pt.is_map(kind):
        for item in value.values():
            yield from missing_in(item, kind.item_type, (*path, MAP_VALUE))
    elif isinstance(value, list) and pt.is_list(kind):
        for item in value:
            yield from missing_in(item, kind.value_type, (*path, LIST_ELEMENT))


_OTHERS: Mapping[type, pa.DataType] = {
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us", "UTC"),
    dt.date: pa.date32(),
    dt.time: pa.time64("us"),
    uuid.UUID: pa.uuid(),
}
MOST_DIGITS = 38
"""Of a decimal column."""


def inferred_type(value: Any, level: int = 0) -> pa.DataType | None:
    """The type of a new column for a value, so many levels below the top; None: it tells nothing."""
    if level > _MOST_LEVELS:
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.string()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, decimal.Decimal):
        return decimal_type(value)
    for python, kind in _OTHERS.items():
        if isinstance(value, python):
            return kind
    if isinstance(value, dict):
        fields = {name: inferred_type(item, level + 1) for name, item in value.items()}
        known = [pa.field(name, kind) for name, kind in fields.items() if kind is not None]
        return pa.struct(known) if known else None
    if isinstance(value, list):
        element: pa.DataType | None = None
        for kind in (inferred_type(item, level + 1) for item in value):
            if kind is not None:
                element = kind if element is None else merged(element, kind)
        return None if element is None else list_of(element)
    return None


def tells_nothing(kind: pa.DataType) -> bool:
    """Whether a schema has a field without any value in it, such as an object of no fields: no column."""
    if pt.is_struct(kind):
        return bool(kind.num_fields == 0)
    if pt.is_list(kind):
        return tells_nothing(kind.value_type)
    return bool(pt.is_map(kind)) and (tells_nothing(kind.item_type) or tells_nothing(kind.key_type))


def decimal_type(value: decimal.Decimal) -> pa.DataType | None:
    """The narrowest decimal that holds the value; None if no decimal column does."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return None  # not a number, or infinite
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return pa.decimal128(precision, scale) if precision <= MOST_DIGITS else None


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds values of both; text if nothing else does, because text holds everything. A field is
    required if both say so."""
    if one == other and not (pt.is_nested(one) or pt.is_nested(other)):
        return one
    if pt.is_struct(one) and pt.is_struct(other):
        return pa.struct(_merged_fields(fields_of(one), fields_of(other)))
    if pt.is_list(one) and pt.is_list(other):
        return list_of(*_merged_inside(one.value_field, other.value_field))
    if pt.is_map(one) and pt.is_map(other):
        item, nullable = _merged_inside(one.item_field, other.item_field)
        return map_of(merged(one.key_type, other.key_type), item, nullable)
    if pt.is_integer(one) and pt.is_integer(other):
        return pa.int64()
    if _is_number(one) and _is_number(other):
        return pa.float64()
    if pt.is_decimal(one) or pt.is_decimal(other):
        return _merged_decimals(one, other)
    return pa.string()


def _merged_fields(ours: Iterable[pa.Field], theirs: Iterable[pa.Field]) -> list[pa.Field]:
    fields = {field.name: field for field in ours}
    more = {field.name: field for field in theirs}
    for name, field in fields.items():
        if name not in more:
            fields[name] = field.with_nullable(True)
    for name, field in more.items():
        if name in fields:
            kind, nullable = _merged_inside(fields[name], field)
            fields[name] = pa.field(name, kind, nullable)
        else:
            fields[name] = field.with_nullable(True)
    return list(fields.values())


def _merged_inside(one: pa.Field, other: pa.Field) -> tuple[pa.DataType, bool]:
    return merged(one.type, other.type), one.nullable or other.nullable


def _merged_decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pt.is_floating(one) or pt.is_floating(other):
        return pa.float64()
    shapes = [(19, 0) if pt.is_integer(kind) else _shape(kind) for kind in (one, other)]
    if None in shapes:
        return pa.string()
    scale = max(shape[1] for shape in shapes if shape)
    precision = max(shape[0] - shape[1] for shape in shapes if shape) + scale
    return pa.decimal128(precision, scale) if precision <= MOST_DIGITS else pa.string()


def _shape(kind: pa.DataType) -> tuple[int, int] | None:
    return (kind.precision, kind.scale) if pt.is_decimal(kind) else None


def fields_of(kind: pa.StructType) -> list[pa.Field]:
    return [kind.field(position) for position in range(kind.num_fields)]


def list_of(kind: pa.DataType, nullable: bool = True) -> pa.DataType:
    """As tables have their lists: equal types are equal whoever made them."""
    return pa.list_(pa.field(LIST_ELEMENT, kind, nullable))


def map_of(key: pa.DataType, item: pa.DataType, nullable: bool = True) -> pa.DataType:
    return pa.map_(key, pa.field(MAP_VALUE, item, nullable))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def combined(fields: Mapping[Path, pa.DataType], more: Mapping[Path, pa.DataType]) -> dict[Path, pa.DataType]:
    """Both sets of new fields as one; a field inside another new one becomes part of that one's type."""
    result = dict(fields)
    for path, kind in sorted(more.items(), key=lambda item: len(item[0])):
        if pt.is_null(kind):
            result[path] = kind
            continue
        outer = next((path[:end] for end in range(1, len(path)) if path[:end] in result), None)
        if outer is not None:
            result[outer] = merged(result[outer], _wrapped(path[len(outer) :], kind, result[outer]))
        else:
            result[path] = merged(result[path], kind) if path in result else kind
    return result


def _wrapped(rest: Path, kind: pa.DataType, around: pa.DataType) -> pa.DataType:
    """The type that holds `kind` at the path `rest`, in the shape of what is around it."""
    if not rest:
        return kind
    if pt.is_list(around) and rest[0] == LIST_ELEMENT:
        return list_of(_wrapped(rest[1:], kind, around.value_type))
    if pt.is_map(around) and rest[0] == MAP_VALUE:
        return map_of(around.key_type, _wrapped(rest[1:], kind, around.item_type))
    position = around.get_field_index(rest[0]) if pt.is_struct(around) else -1
    inside = around.field(position).type if position >= 0 else pa.null()
    return pa.struct([pa.field(rest[0], _wrapped(rest[1:], kind, inside))])


def clash(
    fields: Mapping[Path, pa.DataType], table: Iterable[pa.Field] = (), any_case: int = 0
) -> Path | None:
    """A field that tables would take for another one: to them `{"a.b": 1}` and `{"a": {"b": 1}}` are the same
    column, and so are `a` and `A`, down to the level `any_case`. The last that is given is to blame."""
    held = {spelled: path for one in table for spelled, path in _spellings((one.name,), one.type)}
    for top, kind in fields.items():
        for spelled, path in _spellings(top, kind) if not pt.is_null(kind) else ():
            other = held.setdefault(spelled, path)
            dotted = any("." in name for name in (*other, *path))
            if other != path and (dotted or len(path) == len(other) <= any_case):
                return top
    return None


def without_clashes(
    fields: Mapping[Path, pa.DataType], table: Iterable[pa.Field] = (), any_case: int = 0
) -> dict[Path, pa.DataType]:
    """As many of the fields as can be columns of one table; always the same ones."""
    held = list(table)
    if clash(fields, held, any_case) is None:
        return dict(fields)
    kept: dict[Path, pa.DataType] = {}
    for path in sorted(fields):
        if clash({**kept, path: fields[path]}, held, any_case) is None:
            kept[path] = fields[path]
    return kept


def clash_reason(path: Path) -> str:
    name = ".".join(path)
    return (
        f"the record has a field '{name[:80]}', by its dots the same column as another one, or but for its "
        "case; rename it"
    )


def _spellings(path: Path, kind: pa.DataType) -> Iterator[tuple[str, Path]]:
    """How catalogs write a field and those inside of it, each with its path; also without the levels of lists
    and maps, and whatever their case."""
    short = (name for at, name in enumerate(path) if not at or name not in (LIST_ELEMENT, MAP_VALUE))
    for spelled in {".".join(path).lower(), ".".join(short).lower()}:
        yield spelled, path
    if pt.is_struct(kind):
        for one in fields_of(kind):
            yield from _spellings((*path, one.name), one.type)
    elif pt.is_list(kind):
        yield from _spellings((*path, LIST_ELEMENT), kind.value_type)
    elif pt.is_map(kind):
        yield from _spellings((*path, "key"), kind.key_type)
        yield from _spellings((*path, MAP_VALUE), kind.item_type)


@dataclass(frozen=True)
class GrowthLimit:
    """`columns` is what the table may still get; `of` what a batch may add in all, for the reason."""

    columns: int = NEW_COLUMNS.default
    longest_name: int = NEW_NAMES.default
    of: int = NEW_COLUMNS.default
    reserved: frozenset[str] = frozenset()
    """Columns that the tables have by themselves: no other may have their names."""
    unfit: tuple[pa.DataType, ...] = ()
    """Types whose values cannot be written to these tables."""
    any_case: int = 0
    """How many levels of names are the same whatever their case."""
    longest_column: int | None = None
    """Bytes of the name of a column, without those inside of it."""

    @classmethod
    def from_config(cls, config: Config, reserved: frozenset[str] = frozenset()) -> GrowthLimit:
        given = [config.get(one.name, str(one.default)) for one in (NEW_COLUMNS, NEW_NAMES)]
        most, longest = NEW_COLUMNS.parse(given[0]), NEW_NAMES.parse(given[1])
        return cls(most, longest, most, reserved)

    def less(self, used: int) -> GrowthLimit:
        return replace(self, columns=max(0, self.columns - used))

    def refusal(self, fields: Mapping[Path, pa.DataType], columns: int) -> str | None:
        """Why fields of a record are not added, which would make it so many columns in all."""
        long = next((name for name in _names(fields) if len(name) > self.longest_name), None)
        if long is not None:
            return (
                f"the name of the field '{long[:40]}…' has {len(long)} characters, and a new column may have "
                f"{self.longest_name} ({NEW_NAMES.name})"
            )
        most = self.longest_column
        tops = [path[0] for path in fields if len(path) == 1]
        if most is not None and (over := [name for name in tops if len(name.encode()) > most]):
            return (
                f"the field '{over[0][:40]}…' is named in more than the {most} bytes that a column may have"
            )
        if (strange := next(_strange_names(fields, self.reserved), None)) is not None:
            return strange
        if (unfit := next((one for one in self.unfit if _has_type(fields, one)), None)) is not None:
            return f"the record has a new field of type {unfit}, which this table cannot get; convert it"
        if any(map(_has_maps_as_keys, fields.values())):
            return "the record has a new field with maps as the keys of a map, which no engine reads; drop it"
        if columns > self.columns:
            return (
                f"the record has {column_count(fields)} fields that the table lacks, and a batch may add "
                f"{self.of} columns ({NEW_COLUMNS.name})"
            )
        return None


def _has_type(fields: Mapping[Path, pa.DataType], wanted: pa.DataType) -> bool:
    return any(one == wanted for kind in fields.values() for one in _all_types(kind))


def _has_maps_as_keys(kind: pa.DataType) -> bool:
    maps = (one for one in _all_types(kind) if pt.is_map(one))
    return any(pt.is_map(one) for held in maps for one in _all_types(held.key_type))


def _all_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """A type, and those of the values in it."""
    yield kind
    for at in range(kind.num_fields) if pt.is_nested(kind) else ():
        yield from _all_types(kind.field(at).type)


def column_count(fields: Mapping[Path, pa.DataType]) -> int:
    """Columns that hold values: a struct counts as its fields."""
    return sum(map(_leaves, fields.values()))


def trimmed(fields: Mapping[Path, pa.DataType], most: int) -> dict[Path, pa.DataType]:
    """As many of the fields as make no more columns; always the same ones."""
    kept: dict[Path, pa.DataType] = {}
    left = most
    for path in sorted(fields):
        cost = _leaves(fields[path])
        if cost <= left:
            kept[path] = fields[path]
            left -= cost
    if fields and not kept:
        # Tasks found parts of one field each: none would be a batch whose rows were left out for nothing.
        path = min(fields)
        kept[path] = _cut(fields[path], most)
    return kept


def _cut(kind: pa.DataType, most: int) -> pa.DataType:
    """A type with as many of its columns as allowed; at least one, and one that cannot be cut whole."""
    if pt.is_list(kind):
        return list_of(_cut(kind.value_type, most))
    if not pt.is_struct(kind) or not kind.num_fields:
        return kind
    inside: dict[Path, pa.DataType] = {
        (kind.field(at).name,): kind.field(at).type for at in range(kind.num_fields)
    }
    return pa.struct([pa.field(name, one) for (name, *_), one in trimmed(inside, most).items()])


def _leaves(kind: pa.DataType) -> int:
    if pt.is_null(kind):
        return 0  # no column: one that is there is no longer required
    if pt.is_struct(kind):
        return sum(_leaves(kind.field(position).type) for position in range(kind.num_fields))
    if pt.is_list(kind):
        return _leaves(kind.value_type)
    return _leaves(kind.item_type) + 1 if pt.is_map(kind) else 1


def _strange_names(fields: Mapping[Path, pa.DataType], reserved: frozenset[str]) -> Iterator[str]:
    """Names that engines cannot write down, or have a meaning of their own for: tables stay readable."""
    for name in _names(fields):
        if not name or any(ord(character) < 32 or ord(character) == 127 for character in name):
            yield f"the record has a field named {name[:40]!r}, a name that no new column may have; rename it"
    for path in fields:
        if path[0] in reserved and len(path) == 1:
            yield f"the record has a field named '{path[0]}', which engines of the table reserve; rename it"


def _names(fields: Mapping[Path, pa.DataType]) -> Iterator[str]:
    for path, kind in fields.items():
        yield from path
        yield from _names_in(kind)


def _names_in(kind: pa.DataType) -> Iterator[str]:
    if pt.is_struct(kind):
        for position in range(kind.num_fields):
            yield kind.field(position).name
            yield from _names_in(kind.field(position).type)
    elif pt.is_list(kind):
        yield from _names_in(kind.value_type)
    elif pt.is_map(kind):
        yield from _names_in(kind.item_type)
