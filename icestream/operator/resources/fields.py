"""Fields of a resource, read with their type: what has another one is an InvalidResource that names its path.

A schema may have let anything through (Strimzi's own CRDs are lenient, `render` has none): nothing is taken
for granted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.operator.resources.invalid import InvalidResource

_SHOWN: Final = 60
_QUANTITY: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+|m|k|[MGTPE]|[KMGTPE]i)?")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Fields:
    """One map of a resource, and where it stands."""

    values: Mapping[str, Any]
    path: str

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return _printable(value, self.at(key))

    def required(self, key: str) -> str:
        value = self.text(key).strip()
        if not value:
            raise InvalidResource(f"{self.at(key)} is missing; set it")
        return value

    def number(self, key: str, default: int, at_least: int = 0, at_most: int = 2**31 - 1) -> int:
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(key, "a whole number")
        if not at_least <= value <= at_most:
            raise InvalidResource(f"{self.at(key)} is {value}; take a number from {at_least} to {at_most}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def choice(self, key: str, choices: Sequence[str], default: str = "") -> str:
        value = self.text(key, default)
        if value not in choices:
            raise InvalidResource(
                f"{self.at(key)} is {shown(value)}, which is none of {', '.join(choices)}; take one of them"
            )
        return value

    def quantity(self, key: str, default: str) -> str:
        """An amount of memory or CPU, as Kubernetes writes them."""
        value = self.values.get(key)
        if value is None:
            return default
        text = str(value) if not isinstance(value, bool) and isinstance(value, str | int | float) else ""
        if not _QUANTITY.fullmatch(text) or len(text) > 40:
            raise self._wrong(key, "a quantity such as 500m or 2Gi")
        return text

    def map(self, key: str) -> Fields:
        """An empty map where there is none."""
        value = self.values.get(key)
        if value is None:
            return Fields({}, self.at(key))
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a map")
        return Fields(_string_keys(value, self.at(key)), self.at(key))

    def maps(self, key: str) -> Iterator[Fields]:
        for index, value in enumerate(self.sequence(key)):
            path = f"{self.at(key)}[{index}]"
            if not isinstance(value, Mapping):
                raise InvalidResource(f"{path} is {shown(value)}, not a map; write a map")
            yield Fields(_string_keys(value, path), path)

    def sequence(self, key: str) -> Sequence[Any]:
        value = self.values.get(key)
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(key, "a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        found = []
        for index, value in enumerate(self.sequence(key)):
            if not isinstance(value, str):
                raise InvalidResource(f"{self.at(key)}[{index}] is {shown(value)}, not a text; write a text")
            found.append(_printable(value, f"{self.at(key)}[{index}]"))
        return tuple(found)

    def labels(self, key: str) -> dict[str, str]:
        """A map of texts, such as labels and annotations are."""
        found = self.map(key)
        for name, value in found.values.items():
            if not isinstance(value, str):
                raise InvalidResource(f"{found.at(name)} is {shown(value)}, not a text; put it into quotes")
        return {name: _printable(value, found.at(name)) for name, value in found.values.items()}

    def others(self, known: Iterable[str]) -> list[str]:
        """The paths of fields that are set and not known."""
        return [self.at(key) for key in self.values if key not in set(known) and key in self]

    def _wrong(self, key: str, wanted: str) -> InvalidResource:
        return InvalidResource(
            f"{self.at(key)} is {shown(self.values.get(key))}, not {wanted}; write {wanted}"
        )


def tree(value: Any, path: str, depth: int = 0) -> Any:
    """A piece of an object as it is, if YAML can hold it: texts, numbers, flags, lists and maps."""
    if depth > 32:
        raise InvalidResource(f"{path} is nested too deeply; make it flatter")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidResource(f"{path} is {value}, which is no number of JSON; write another one")
        return value
    if isinstance(value, str):
        return _printable(value, path)
    if isinstance(value, Mapping):
        pairs = _string_keys(value, path).items()
        return {key: tree(one, f"{path}.{key}", depth + 1) for key, one in pairs}
    if isinstance(value, Sequence):
        return [tree(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(value)]
    raise InvalidResource(f"{path} is {shown(value)}, which is nothing that JSON knows; write it as a text")


def property_text(value: Any, path: str) -> str:
    """The value of a property: texts, numbers and flags, as Java writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        return _printable(value, path)
    raise InvalidResource(f"{path} is {shown(value)}; write a text, a number, true or false")


def shown(value: Any) -> str:
    """A value in a message: short, and never the inside of a map, which may hold a password."""
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    text = str(value)
    text = _CONTROL.sub("?", text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    return f"'{text}'" if isinstance(value, str) else text


def _string_keys(value: Mapping[Any, Any], path: str) -> Mapping[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise InvalidResource(f"{path} has the key {shown(key)}, which is not a text; put it into quotes")
        _printable(key, f"a key of {path}")
    return value


def _printable(value: str, path: str) -> str:
    if _CONTROL.search(value):
        raise InvalidResource(f"{path} has a control character; take it out")
    return value
