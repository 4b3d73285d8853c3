"""Declare settings once; parse, validate and suggest from the declaration.

Each part of the product declares a `ConfigDef` next to the code that uses it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from icestream.api.errors import ConfigError, Problem

Config = Mapping[str, str]

_TYPO_CUTOFF: Final = 0.86


class Type(StrEnum):
    """Kafka's names for the types of settings, as REST shows them."""

    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True)
class Setting:
    """One key: its type, default and meaning. `check` returns what is wrong with a parsed value, or None."""

    name: str
    type: Type
    default: Any
    doc: str
    choices: Sequence[str] = ()
    at_least: int | None = None
    check: Callable[[Any], str | None] | None = None
    importance: str = "MEDIUM"
    group: str = "Common"

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, text: str) -> Any:
        """The value of `text` in this setting's type; raises ValueError with the reason."""
        value = _PARSERS[self.type](text)
        if self.choices and value not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        if self.at_least is not None and value < self.at_least:
            raise ValueError(f"Value must be at least {self.at_least}")
        if self.check and (reason := self.check(value)):
            raise ValueError(reason)
        return value


def _whole_number(bits: int, name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"Not a number of type {name}") from None
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(f"Not a number of type {name}")
        return value

    return parse


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return lowered == "true"


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


_PARSERS: Mapping[Type, Callable[[str], Any]] = {
    Type.STRING: str.strip,
    Type.CLASS: str.strip,
    Type.PASSWORD: str,
    Type.INT: _whole_number(32, "INT"),
    Type.LONG: _whole_number(64, "LONG"),
    Type.BOOLEAN: _boolean,
    Type.LIST: _list,
}


@dataclass(frozen=True)
class ConfigDef:
    """A set of settings, and the prefixes under which any key is allowed."""

    settings: Sequence[Setting]
    prefixes: Sequence[str] = ()

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef((*self.settings, *other.settings), (*self.prefixes, *other.prefixes))

    @property
    def names(self) -> list[str]:
        return [setting.name for setting in self.settings]

    def parse(self, config: Config) -> dict[str, Any]:
        """All settings by name, defaults filled in; raises ConfigError with every problem at once."""
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        for setting in self.settings:
            value, problem = self._value(setting, config)
            values[setting.name] = value
            if problem:
                problems.append(problem)
        if problems:
            raise ConfigError(problems)
        return values

    def problems(self, config: Config) -> list[Problem]:
        found = (self._value(setting, config)[1] for setting in self.settings)
        return [problem for problem in found if problem]

    def _value(self, setting: Setting, config: Config) -> tuple[Any, Problem | None]:
        text = config.get(setting.name)
        if text is None:
            if setting.is_required:
                return None, Problem(
                    setting.name,
                    f'Missing required configuration "{setting.name}" which has no default value.',
                )
            return setting.default, None
        try:
            return setting.parse(text), None
        except ValueError as error:
            shown = "[hidden]" if setting.type is Type.PASSWORD else text
            return None, Problem(
                setting.name, f"Invalid value {shown} for configuration {setting.name}: {error}"
            )

    def knows(self, key: str) -> bool:
        return key in self.names or any(key.startswith(prefix) for prefix in self.prefixes)

    def unknown(self, keys: Iterable[str]) -> dict[str, str | None]:
        """The keys that are not ours, each with the known key that it looks like, if any."""
        return {key: self._suggestion(key) for key in keys if not self.knows(key)}

    def _suggestion(self, key: str) -> str | None:
        # A prefix is compared with as many leading characters, so that `iceberg.catalogs.uri` finds
        # `iceberg.catalog.`.
        close = difflib.get_close_matches(key, self.names, n=1, cutoff=_TYPO_CUTOFF)
        if close:
            return close[0]
        for prefix in self.prefixes:
            head = key[: len(prefix)]
            if difflib.get_close_matches(head, [prefix], n=1, cutoff=_TYPO_CUTOFF):
                return f"{prefix}*"
        return None


def subset(config: Config, prefix: str) -> dict[str, str]:
    """The keys under a prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
