"""The leaves of nested JSON objects that nobody has decoded yet. For Flatten.

Objects of a topic look alike, so their shape is learned: a strict decoder of that shape then says in one pass
whether a chunk has any other. Records of another shape are flattened one by one, as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np

from icestream.records.json_source import Path, at_path, can_be_projected, object_type, parsed
from icestream.records.rows import Indexes
from icestream.records.values import Text

Shape = dict[str, Any]
"""Name → the shape of an object, or what else is there: _LEAF or _NULL."""
_LEAF: Final = str | int | float | bool | list[Any] | None | msgspec.UnsetType
_NULL: Final = None | msgspec.UnsetType
"""Only nulls so far: it may turn out to be an object."""
_MOST_CHANGES: Final = 500
"""A shape that grows further is no shape: its objects are maps with keys that are data."""
_DEEPEST: Final = 100
_NO_OBJECT: Final = {type(None), msgspec.UnsetType}
_raw_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode


@dataclass
class LearnedShape:
    """What the objects at one path of the values have looked like so far."""

    path: Path
    shape: Shape = field(default_factory=dict)
    changes: int = 0
    _decoder: msgspec.json.Decoder[Any] | None = None

    def decode(self, values: Sequence[bytes]) -> list[Any]:
        """The objects as structs of the shape, which grows as far as it can; None for those that do not fit
        into it."""
        if not all(map(can_be_projected, self.path)):
            return [None] * len(values)
        decoded = self._decode(values)
        odd = [value for value, found in zip(values, decoded, strict=True) if found is None]
        if not odd or self.changes == _MOST_CHANGES or not self._learn(odd):
            return decoded
        self._decoder = None
        return self._decode(values)

    def _decode(self, values: Sequence[bytes]) -> list[Any]:
        if self._decoder is None:
            self._decoder = msgspec.json.Decoder(_within(self.path, _strict(self.shape)))
        decode = self._decoder.decode
        try:
            found: list[Any] = list(map(decode, values))
        except ValueError:  # msgspec's errors are ValueErrors
            found = [_or_none(decode, value) for value in values]
        inner = at_path(found, self.path)
        return [one if isinstance(one, msgspec.Struct) else None for one in inner]

    def _learn(self, values: Sequence[bytes]) -> bool:
        before = self.changes
        for value in values:
            inner = _or_none(parsed, value)
            for name in self.path:
                inner = inner.get(name) if isinstance(inner, dict) else None
            if isinstance(inner, dict):
                self._grow(self.shape, inner, _DEEPEST)
        return self.changes > before

    def _grow(self, shape: Shape, value: Mapping[str, Any], levels: int) -> None:
        for name, inner in value.items():
            known = shape.get(name)
            if known is None or (known is _NULL and inner is not None):
                if self.changes == _MOST_CHANGES or not levels or not can_be_projected(name):
                    continue
                self.changes += 1
                known = shape[name] = {} if isinstance(inner, dict) else _NULL if inner is None else _LEAF
            if isinstance(inner, dict) and isinstance(known, dict):
                self._grow(known, inner, levels - 1)


def _strict(shape: Shape) -> Any:
    """A msgspec type that takes objects of the shape and no others."""
    kinds = {
        name: _strict(inner) | None if isinstance(inner, dict) else inner for name, inner in shape.items()
    }
    return object_type(kinds, closed=True)


def _within(path: Path, kind: Any) -> Any:
    """A msgspec type that takes what is at a path and passes over everything else."""
    for name in reversed(path):
        kind = object_type({name: kind})
    return kind


def _or_none(decode: Callable[[bytes], Any], value: bytes) -> Any:
    try:
        return decode(value)
    except ValueError:
        return None


@dataclass(frozen=True, eq=False)
class Leaves:
    """Where the leaves of alike objects are: paths below the objects. A nested object that is null in some
    rows is a leaf there, too."""

    paths: Sequence[Path]
    null_objects: Mapping[Path, Indexes]
    """In which rows each is null."""


def leaves(shape: Shape, structs: Sequence[Any], skip: Collection[str]) -> Leaves:
    kept = {name: inner for name, inner in shape.items() if name not in skip}
    nulls = dict(_null_objects(kept, structs, np.arange(len(structs)), ()))
    return Leaves(list(_leaf_paths(kept, ())), nulls)


def _leaf_paths(shape: Shape, path: Path) -> Iterator[Path]:
    for name, inner in shape.items():
        if isinstance(inner, dict):
            yield from _leaf_paths(inner, (*path, name))
        else:
            yield (*path, name)


def _null_objects(
    shape: Shape, structs: Sequence[Any], rows: Indexes, path: Path
) -> Iterator[tuple[Path, Indexes]]:
    for name, inner in shape.items():
        if not isinstance(inner, dict) or not structs:
            continue
        found = list(map(attrgetter(type(structs[0]).slots[name]), structs))
        there, inner_rows = found, rows
        if set(map(type, found)) & _NO_OBJECT:
            nulls = np.fromiter((one is None for one in found), np.bool_, len(found))
            if nulls.any():
                yield (*path, name), rows[nulls]
            held = np.fromiter((isinstance(one, msgspec.Struct) for one in found), np.bool_, len(found))
            there, inner_rows = [found[at] for at in np.flatnonzero(held).tolist()], rows[held]
        yield from _null_objects(inner, there, inner_rows, (*path, name))


Join = Callable[[str, str], str]
"""The name of a field from the names of the objects around it and its own."""


@dataclass(frozen=True)
class Scattered:
    """Text to flatten: what stands before its names, and which of its keys do not count."""

    prefix: str
    text: Text
    skip: Collection[str] = ()

    def raw(self, row: int) -> msgspec.Raw | bytes | None:
        """The JSON of one row; None if there is none."""
        at = row if self.text.rows is None else int(self.text.rows[row])
        value: msgspec.Raw | bytes | None = self.text.source.values[at]
        for name in self.text.path:
            if value is None or not _is_object(value):
                return None
            value = _fields(value).get(name)
        return value


def flat_text(scattered: Sequence[Scattered], row: int, join: Join) -> bytes:
    """One flat JSON object of everything that a row has in several texts."""
    flat: dict[str, msgspec.Raw] = {}
    for one in scattered:
        value = one.raw(row)
        if value is None:
            continue
        if _is_object(value):
            _flatten(value, one.prefix, one.skip, join, flat)
        else:
            flat[one.prefix] = msgspec.Raw(value)
    try:
        return _encode(flat)
    except UnicodeEncodeError:  # half a surrogate pair, which Java lets pass
        pairs = (b"%b:%b" % (json.dumps(name).encode(), bytes(value)) for name, value in flat.items())
        return b"{%b}" % b",".join(pairs)


def _flatten(
    value: msgspec.Raw | bytes, prefix: str, skip: Collection[str], join: Join, flat: dict[str, msgspec.Raw]
) -> None:
    levels = [(prefix, iter([one for one in _fields(value).items() if one[0] not in skip]))]
    while levels:
        prefix, fields = levels[-1]
        for name, inner in fields:
            if _is_object(inner):
                levels.append((join(prefix, name), iter(_fields(inner).items())))
                break
            flat[join(prefix, name)] = inner
        else:
            levels.pop()


def _is_object(value: msgspec.Raw | bytes) -> bool:
    return bytes(value).lstrip()[:1] == b"{"


def _fields(value: msgspec.Raw | bytes) -> dict[str, msgspec.Raw]:
    try:
        return _raw_fields(value)
    except ValueError:  # half a surrogate pair
        found = parsed(bytes(value))
        return {name: msgspec.Raw(json.dumps(inner).encode()) for name, inner in found.items()}
