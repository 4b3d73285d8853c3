"""Literals as Connect reads them from text: null, booleans, numbers, moments, lists, maps, else strings.

What `Values.parseString` of Java infers, with its schema. For InsertHeader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.records.schema import STRING, ConnectSchema, Kind
from icestream.transforms.literal_types import (
    BOOLEAN,
    Merger,
    Mismatch,
    aligned,
    as_moment,
    as_number,
)

_DELIMITERS: Final = ':,{}[]"'
_JAVA_SPACES: Final = "".join(map(chr, range(33)))
_WORDS: Final[Mapping[str, tuple[ConnectSchema | None, Any]]] = {
    "null": (None, None),
    "true": (BOOLEAN, True),
    "false": (BOOLEAN, False),
}


@dataclass(frozen=True)
class Literal:
    schema: ConnectSchema | None
    value: Any


NULL: Final = Literal(None, None)


def parsed_literal(text: str) -> Literal:
    return _Parser(text).value(embedded=False) if text else Literal(STRING, "")


class _NoValue(Exception):
    """The text is no list or map, so it is a string."""


@dataclass
class _Parser:
    """Reads tokens: a delimiter, or what is between two of them. One token may be looked at ahead."""

    text: str
    at: int = 0
    ahead: str | None = None
    before: str | None = None

    def more(self) -> bool:
        return self.ahead is not None or self.at < len(self.text)

    def mark(self) -> int:
        return self.at - len(self.ahead or "")

    def back_to(self, mark: int) -> None:
        self.at, self.ahead, self.before = mark, None, None

    def next(self) -> str:
        token = self.ahead if self.ahead is not None else self._token()
        self.ahead, self.before = None, token
        return token

    def takes(self, expected: str) -> bool:
        """Whether the next token that is not blank is this one, which is taken then."""
        if self.ahead is None:
            if not self.more():
                return False
            self.ahead = self._token()
        while not _trimmed(self.ahead) and self.at < len(self.text):
            self.ahead = self._token()
        if _trimmed(self.ahead) != expected:
            return False
        self.ahead = None
        return True

    def _token(self) -> str:
        start, escaped = self.at, False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _DELIMITERS and not escaped:
                if start == self.at:
                    self.at += 1
                break
            escaped = char == "\\" and not escaped
            self.at += 1
        return self.text[start : self.at]

    def value(self, embedded: bool) -> Literal:
        if not self.more():
            return NULL
        if embedded and self.takes('"'):
            return self._quoted()
        for word, (schema, value) in _WORDS.items():
            if self._is_word(word, embedded):
                return Literal(schema, value)
        start = self.mark()
        try:
            if self.takes("["):
                return self._list()
            if self.takes("{"):
                return self._map()
        except (_NoValue, Mismatch):
            self.back_to(start)
        token = self.next()
        return self._scalar(_trimmed(token), embedded) if _trimmed(token) else Literal(STRING, token)

    def _is_word(self, word: str, embedded: bool) -> bool:
        start = self.mark()
        if self.takes(word) and (embedded or not self.more()):
            return True
        self.back_to(start)
        return False

    def _quoted(self) -> Literal:
        pieces = []
        while self.more() and not self.takes('"'):
            pieces.append(self.next())
        text = "".join(pieces)
        moment = as_moment(text)
        return Literal(STRING, text) if moment is None else Literal(*moment)

    def _scalar(self, token: str, embedded: bool) -> Literal:
        if token[0].isdecimal():
            moment = self._moment(token)
            if moment is not None:
                return moment
        if token[0].isdecimal() or token[0] in "+-":
            number = as_number(token)
            if number is not None:
                return Literal(*number)
        if embedded:
            raise _NoValue
        return Literal(STRING, self.text)

    def _moment(self, token: str) -> Literal | None:
        """Colons part times into five tokens."""
        start = self.mark()
        following = self._following(4)
        moment = as_moment(token + following) if following is not None else None
        if moment is None:
            self.back_to(start)
            moment = as_moment(token)
        return None if moment is None else Literal(*moment)

    def _following(self, tokens: int) -> str | None:
        start = self.mark()
        for _ in range(tokens):
            if not self.more():
                self.back_to(start)
                return None
            self.next()
        return self.text[start : self.at]

    def _list(self) -> Literal:
        items: list[Any] = []
        common = Merger()
        while self.more():
            if self.takes("]"):
                return _list_literal(common.schema, items)
            if self.takes(","):
                raise _NoValue
            item = self.value(embedded=True)
            common.add(item.schema)
            items.append(item.value)
            here = self.mark()
            if self.takes("]"):
                self.back_to(here)
            elif not self.takes(","):
                raise _NoValue
        raise _NoValue

    def _map(self) -> Literal:
        entries: list[tuple[Any, Any]] = []
        keys, values = Merger(), Merger()
        while self.more():
            if self.takes("}"):
                return _map_literal(keys.schema, values.schema, entries)
            if self.takes(","):
                raise _NoValue
            key = self.value(embedded=True)
            if key.value is None or not self.takes(":"):
                raise _NoValue
            value = self.value(embedded=True)
            entries.append((key.value, value.value))
            self.takes(",")
            keys.add(key.schema)
            values.add(value.schema)
        raise _NoValue


def _list_literal(item: ConnectSchema | None, items: list[Any]) -> Literal:
    held = items if item is None else [aligned(item, one) for one in items]
    return Literal(ConnectSchema(Kind.ARRAY, value=item), held)


def _map_literal(
    key: ConnectSchema | None, value: ConnectSchema | None, entries: list[tuple[Any, Any]]
) -> Literal:
    """Without a schema for its keys, Java takes over none for its values either."""
    if key is None:
        return Literal(ConnectSchema(Kind.MAP), _unique(entries))
    held = [
        (aligned(key, name), one if value is None else aligned(value, one)) for name, one in _unique(entries)
    ]
    return Literal(ConnectSchema(Kind.MAP, key=key, value=value), _unique(held))


def _unique(entries: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The last of equal keys counts, at the place of the first."""
    kept: list[tuple[Any, Any]] = []
    for key, value in entries:
        at = next((place for place, one in enumerate(kept) if one[0] == key), None)
        if at is None:
            kept.append((key, value))
        else:
            kept[at] = (key, value)
    return kept


def _trimmed(token: str) -> str:
    """As Java trims: of control characters, too, and of no other whitespace than that below U+0020."""
    return token.strip(_JAVA_SPACES)
