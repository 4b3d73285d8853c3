"""Declare settings once; parse, validate and suggest from the declaration.

Each part of the product declares a `ConfigDef` next to the code that uses it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from icestream.api.errors import ConfigError, Problem

Config = Mapping[str, str]

_MOST_COMPARED: Final = 300
_MOST_COMPARISONS: Final = 200_000
_TYPO_CUTOFF: Final = 0.86
_BLANKS: Final = "".join(map(chr, range(33)))
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")


class Type(StrEnum):
    """Kafka's names for the types of settings, as REST shows them."""

    STRING = "STRING"
    SHORT = "SHORT"
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
    ignores_case: bool = False
    """Whether choices are taken in any case."""
    at_least: int | None = None
    check: Callable[[Any], str | None] | None = None
    importance: str = "MEDIUM"
    group: str | None = None
    order: int = -1
    """The place within the group, as REST shows it."""
    width: str = "NONE"
    display_name: str = ""
    spoken: str = ""
    """Its name in messages, where that is not the key."""
    is_embedded: bool = False
    """Java's way with the settings of a transform: what cannot be parsed is told with the whole key, what a
    rule refuses with the `spoken` name."""
    rule: Callable[[str, Any], str | None] | None = None
    """Like `check`, but given the name too, asked about nulls, and says the whole message. Lists keep their
    empty items for it."""

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, text: str) -> Any:
        """The value of `text` in this setting's type; raises ValueError with the reason."""
        value = self._parsed(text)
        if reason := self._refusal(value) or self._ruling(value):
            raise ValueError(reason)
        return value

    def value_of(self, text: str) -> Any:
        """The value of `text`, also of one that is refused; None if it cannot be parsed."""
        try:
            return self._parsed(text)
        except ValueError:
            return None

    def problems(self, text: str | None) -> list[str]:
        """What is wrong with a text, or with a null; what cannot be parsed is also checked as a null."""
        value, found = None, []
        if text is not None:
            try:
                value = self._parsed(text)
            except ValueError as error:
                found.append(self._problem(text, str(error), is_misread=True))
        return [*found, *self.refusals(value)]

    def refusals(self, value: Any) -> list[str]:
        """What is wrong with a parsed value, or with None."""
        reason, message = self._refusal(value), self._ruling(value)
        return [*([self._problem(value, reason)] if reason else ()), *([message] if message else ())]

    def _parsed(self, text: str) -> Any:
        keeps_blanks = self.type is Type.LIST and self.rule is not None
        return _items(text) if keeps_blanks else _PARSERS[self.type](text)

    def _ruling(self, value: Any) -> str | None:
        return self.rule(self.spoken or self.name, value) if self.rule else None

    def _refusal(self, value: Any) -> str | None:
        if self.choices and not self._is_chosen(value):
            how = " (case insensitive)" if self.ignores_case else ""
            return f"String must be one of{how}: {', '.join(self.choices)}"
        if self.at_least is not None:
            if value is None:
                return None if self.default is None else "Value must be non-null"
            if value < self.at_least:
                return f"Value must be at least {self.at_least}"
        return self.check(value) if self.check and value is not None else None

    def _is_chosen(self, value: Any) -> bool:
        if self.ignores_case and value is not None:
            return value.upper() in map(str.upper, self.choices)
        return value in self.choices

    def _problem(self, value: Any, reason: str, *, is_misread: bool = False) -> str:
        shown = "[hidden]" if self.type is Type.PASSWORD else _in_words(value)
        name = self.name if is_misread and self.is_embedded else self.spoken or self.name
        return f"Invalid value {shown} for configuration {name}: {reason}"


def _in_words(value: Any) -> str:
    """A value as Java prints it."""
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def trimmed(text: str) -> str:
    """Without what Java's `trim` takes away: blanks and control characters, but no other space."""
    return text.strip(_BLANKS)


def _whole_number(bits: int, name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(trimmed(text)) if _WHOLE_NUMBER.fullmatch(trimmed(text)) else 2**bits
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(f"Not a number of type {name}")
        return value

    return parse


def _boolean(text: str) -> bool:
    lowered = trimmed(text).lower()
    if lowered not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return lowered == "true"


def _items(text: str) -> list[str]:
    return [trimmed(item) for item in text.split(",")] if trimmed(text) else []


def _list(text: str) -> list[str]:
    return [item for item in _items(text) if item]


_PARSERS: Mapping[Type, Callable[[str], Any]] = {
    Type.STRING: trimmed,
    Type.CLASS: trimmed,
    Type.PASSWORD: str,
    Type.SHORT: _whole_number(16, "SHORT"),
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
    former: Mapping[str, str] = field(default_factory=dict)
    """Names that settings had in earlier versions, and have no more."""

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef(
            (*self.settings, *other.settings),
            (*self.prefixes, *other.prefixes),
            {**self.former, **other.former},
        )

    @property
    def names(self) -> list[str]:
        return [setting.name for setting in self.settings]

    def under(self, prefix: str, group: str, first: int) -> ConfigDef:
        """The same settings as part of another definition; `first` is the place of the first in its group."""
        ordered = sorted(self.settings, key=_place)
        return ConfigDef(
            tuple(
                replace(
                    setting,
                    name=prefix + setting.name,
                    spoken=setting.spoken or setting.name,
                    is_embedded=True,
                    group=group,
                    order=first + place,
                    display_name=setting.display_name or setting.name,
                )
                for place, setting in enumerate(ordered)
            ),
            tuple(prefix + known for known in self.prefixes),
        )

    def parse(self, config: Config) -> dict[str, Any]:
        """All settings by name, defaults filled in; raises ConfigError with every problem at once."""
        problems = self.problems(config)
        if problems:
            raise ConfigError(problems)
        return {setting.name: _value(setting, config) for setting in self.settings}

    def problems(self, config: Mapping[str, str | None]) -> list[Problem]:
        """What is wrong with the keys of this definition; a null is checked as such, not as a missing key."""
        return [
            Problem(setting.name, message)
            for setting in self.settings
            for message in _problems(setting, config)
        ]

    def knows(self, key: str) -> bool:
        return key in self.names or any(key.startswith(prefix) for prefix in self.prefixes)

    def unknown(self, keys: Iterable[str]) -> dict[str, str | None]:
        """The keys that are not ours, each with the known key that it looks like, if any.

        Comparing texts is slow: after some hundred keys that nobody knows, no more are compared, nor after
        fewer where very many are known.
        """
        unknown = [key for key in keys if not self.knows(key)]
        most = min(_MOST_COMPARED, _MOST_COMPARISONS // (len(self.settings) + 1))
        return {key: self._suggestion(key) if at < most else None for at, key in enumerate(unknown)}

    def _suggestion(self, key: str) -> str | None:
        if key in self.former:
            return self.former[key]
        # A prefix is compared with as many leading characters, so that `transform.a.type` finds
        # `transforms.`.
        close = difflib.get_close_matches(key, self.names, n=1, cutoff=_TYPO_CUTOFF)
        if close:
            return close[0]
        for prefix in self.prefixes:
            head = key[: len(prefix)]
            if difflib.get_close_matches(head, [prefix], n=1, cutoff=_TYPO_CUTOFF):
                return f"{prefix}*"
        return None


def _place(setting: Setting) -> tuple[bool, int, str]:
    """Java's order of settings that have none of their own."""
    return not setting.is_required, ("HIGH", "MEDIUM", "LOW").index(setting.importance), setting.name


def _problems(setting: Setting, config: Mapping[str, str | None]) -> list[str]:
    if setting.name in config:
        return setting.problems(config[setting.name])
    if setting.is_required:
        missing = f'Missing required configuration "{setting.name}" which has no default value.'
        return [missing, *setting.refusals(None)]
    return []


def _value(setting: Setting, config: Config) -> Any:
    text = config.get(setting.name)
    return setting.default if text is None else setting.parse(text)


def subset(config: Config, prefix: str) -> dict[str, str]:
    """The keys under a prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
