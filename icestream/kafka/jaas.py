"""The language of `sasl.jaas.config`. Called by `connection.py`.

org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="…";
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<blank> \s+ | //[^\n]* | /\*(?:.*?\*/|.*) | /[^\n]* )
    | (?P<quoted> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<sign> [;=] )
    | (?P<word> [^\s;="'/]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_CONTROLS: Final[Mapping[str, str]] = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True)
class LoginModule:
    """One entry: the class that logs in, and its options, among them the secrets."""

    name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        return self.name.rpartition(".")[2]


def parse(text: str) -> LoginModule:
    """The one login module of a JAAS text; ValueError says what is wrong, and shows no value."""
    tokens = list(_tokens(text))
    if len(tokens) < 2:
        raise ValueError('write: <LoginModule> required <option>="<value>" …;')
    name, flag = tokens[0], tokens[1]
    if flag.lower() not in _FLAGS:
        raise ValueError(f"the word after the login module must be one of {', '.join(_FLAGS)}")
    ends = [at for at, token in enumerate(tokens) if token == ";" and isinstance(token, _Sign)]
    if ends != [len(tokens) - 1]:
        raise ValueError("it must name one login module, and end with a semicolon")
    return LoginModule(name, _options(tokens[2:-1]))


class _Sign(str):
    """A semicolon or an equals sign that is not part of a value."""


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError("a quotation mark is not closed")
        at = found.end()
        if found["quoted"]:
            yield _ESCAPE.sub(_unescaped, found["quoted"][1:-1])
        elif found["sign"]:
            yield _Sign(found["sign"])
        elif found["word"]:
            yield found["word"]


def _unescaped(found: re.Match[str]) -> str:
    octal, other = found.groups()
    return chr(int(octal, 8)) if octal else _CONTROLS.get(other, other)


def _options(tokens: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        entry = tokens[at : at + 3]
        if isinstance(entry[0], _Sign):
            raise ValueError("an option has no name")
        if len(entry) < 3 or not isinstance(entry[1], _Sign) or isinstance(entry[2], _Sign):
            raise ValueError("an option has no value")
        options[entry[0]] = entry[2]
    return options
