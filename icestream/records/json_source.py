"""JSON values of a chunk as they came; decodes only the fields that somebody asks for, exactly typed.

The JSON converter makes it, transforms ask it through `values`, the sink decodes the rest of its text in
one native pass. Projections are msgspec's: a path costs a fraction of what decoding the record would.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

import msgspec

from icestream.api.nesting import NestedTooDeeply, read_json
from icestream.records.payloads import Payloads

Path = tuple[str, ...]
_NEVER_NAMED: Final = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
ABSENT: Final = msgspec.UNSET
"""Where the object has no such key."""


def parsed(text: bytes, number: Callable[[str], Any] = float) -> Any:
    """One JSON value as Java would read it: the last of equal keys wins, a huge number is infinite (unless
    `number` knows better).

    Raises ValueError with a reason.
    """
    try:
        return read_json(text, parse_float=number, parse_constant=_refuse)
    except NestedTooDeeply:
        raise ValueError("the value is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the value is not UTF-8: {error}") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


@dataclass
class Learned:
    """Which paths earlier chunks were asked for: the next chunk decodes all of them in one pass. Only speed
    depends on it, so it may be kept as long as the converter lives."""

    paths: dict[Path, None] = field(default_factory=dict)
    _decoders: dict[tuple[Path, ...], msgspec.json.Decoder[Any]] = field(default_factory=dict)

    def projection(self) -> msgspec.json.Decoder[Any]:
        wanted = tuple(self.paths)
        if wanted not in self._decoders:
            self._decoders[wanted] = msgspec.json.Decoder(_projection(wanted))
        return self._decoders[wanted]


def can_be_projected(name: str) -> bool:
    """Whether msgspec takes the name of a field."""
    return _NEVER_NAMED.search(name) is None


def _projection(paths: Sequence[Path]) -> Any:
    """A msgspec type with the fields of these paths. One whose own fields are asked for, too, is decoded
    whole, as is an object with a field whose name msgspec does not take."""
    if not all(can_be_projected(path[0]) for path in paths):
        return dict[str, object]
    whole = {path[0] for path in paths if len(path) == 1}
    inner: dict[str, list[Path]] = {}
    for path in paths:
        if path[0] not in whole:
            inner.setdefault(path[0], []).append(path[1:])
    kinds: dict[str, Any] = dict.fromkeys(whole, Any)
    kinds |= {name: _projection(rest) | None for name, rest in inner.items()}
    return object_type(kinds)


def object_type(kinds: Mapping[str, Any], *, closed: bool = False) -> Any:
    """The msgspec type of JSON objects with these keys, each of which may be absent; with no others, if it is
    closed. A key whose name msgspec does not take is left out. `slots` are the attributes by name."""
    slots = {name: f"f{position}" for position, name in enumerate(kinds) if can_be_projected(name)}
    return msgspec.defstruct(
        "JsonObject",
        [(slots[name], kinds[name] | msgspec.UnsetType, ABSENT) for name in slots],
        rename={slot: name for name, slot in slots.items()},
        namespace={"slots": slots},
        forbid_unknown_fields=closed,
        eq=False,
        gc=False,
    )


@dataclass(frozen=True, eq=False)
class JsonSource:
    """The values of a chunk: one JSON object each, known to be valid and within the limit of levels."""

    values: Sequence[bytes]
    learned: Learned = field(default_factory=Learned)
    _found: dict[Path, list[Any]] = field(default_factory=dict)
    _joined: Payloads | None = None

    @classmethod
    def projected(
        cls,
        values: Sequence[bytes],
        learned: Learned,
        projected: list[Any],
        joined: Payloads | None = None,
    ) -> JsonSource:
        """With what the projection of all learned paths has found already."""
        source = cls(values, learned, _joined=joined)
        source._keep(projected)
        return source

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def payloads(self) -> Payloads:
        return self._joined if self._joined is not None else Payloads.of(self.values)

    def expect(self, path: Path) -> None:
        """Says that a path will be asked for: those that are expected together are decoded in one pass."""
        if path:
            self.learned.paths.setdefault(path)

    def objects(self, path: Path) -> list[Any]:
        """What each value has at a path, as Python's own values; ABSENT where the path ends early."""
        if not path:
            return self._whole
        if path not in self._found:
            self.expect(path)
            self._project()
        return self._found[path]

    @cached_property
    def _whole(self) -> list[Any]:
        try:
            return list(map(msgspec.json.decode, self.values))
        except ValueError:  # msgspec's errors are ValueErrors
            return [_decoded_alone(value, msgspec.json.decode) for value in self.values]

    def _project(self) -> None:
        decode = self.learned.projection().decode
        try:
            projected: list[Any] = list(map(decode, self.values))
        except ValueError:
            projected = [_decoded_alone(value, decode) for value in self.values]
        self._keep(projected)

    def _keep(self, projected: list[Any]) -> None:
        for path in self.learned.paths:
            self._found[path] = at_path(projected, path)


def _decoded_alone(value: bytes, decode: Any) -> Any:
    """The projection, or the whole value where it has another shape than the projection expects."""
    try:
        return decode(value)
    except ValueError:
        return parsed(value)


def at_path(objects: list[Any], path: Path) -> list[Any]:
    """What each object, a dict or of an `object_type`, has at a path; ABSENT where the path ends early."""
    for name in path:
        first = objects[0] if objects else None
        slot = getattr(type(first), "slots", {}).get(name)
        if slot is not None and all(map(isinstance, objects, repeat(type(first)))):
            objects = list(map(attrgetter(slot), objects))
        elif type(first) is dict and all(map(isinstance, objects, repeat(dict))):
            objects = [one.get(name, ABSENT) for one in objects]
        else:
            objects = [_at(one, name) for one in objects]
    return objects


def _at(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, ABSENT)
    slot = getattr(type(value), "slots", {}).get(name)
    return ABSENT if slot is None else getattr(value, slot)


def encoded(value: Any) -> bytes:
    """A decoded value as JSON text again."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_number).encode()


def _number(value: Any) -> float:
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(type(value).__name__)
