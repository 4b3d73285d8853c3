"""The small language of `--where`: comparisons over the columns of a table, joined with and, or and not.

stage = 'TRANSFORMATION' and (reason like '%amount%' or offset in (7, 9)) and not replayed
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from icestream.api.errors import PreconditionError

Row = Mapping[str, Any]
Test = Callable[[Row], bool]


class Kind(Enum):
    """What a column holds, and with what it may be compared."""

    TEXT = "a text in single quotes"
    NUMBER = "a number"
    TIME = "a time in single quotes, such as '2026-11-15 10:30' (UTC) or '2026-11-15T10:30:00+01:00'"
    FLAG = "true or false"


_TOKENS: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<word>[A-Za-z_][\w.]*)"
    r"|(?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,))"
)
_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST: Final = 50
_DIGITS: Final = 20


@dataclass(frozen=True)
class Token:
    kind: str
    text: str

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


_END: Final = Token("end", "the end")


def parsed(text: str, columns: Mapping[str, Kind]) -> Test:
    """The test that a text describes. Comparisons with a null are false. PreconditionError: what is wrong."""
    return _Parser(_tokens(text), columns).whole()


def _tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKENS.match(text, at)
        if found is None:
            raise PreconditionError(f"--where: nothing can begin with {text[at:].strip()[:20]!r}")
        kind = found.lastgroup or ""
        tokens.append(Token(kind, found.group(kind)))
        at = found.end()
    return tokens


@dataclass
class _Parser:
    tokens: list[Token]
    columns: Mapping[str, Kind]
    at: int = field(default=0)
    depth: int = field(default=0)

    def whole(self) -> Test:
        test = self._either()
        if self._next() is not _END:
            raise self._expected("'and' or 'or'")
        return test

    def _next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def _take(self, word: str) -> bool:
        """Go past a word or sign, if it is next."""
        if self._next().is_word(word) or (self._next().kind == "sign" and self._next().text == word):
            self.at += 1
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise self._expected(f"'{sign}'")

    def _expected(self, what: str) -> PreconditionError:
        return PreconditionError(f"--where: expected {what}, found {self._next().text}")

    def _either(self) -> Test:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise PreconditionError(f"--where: more than {_DEEPEST} levels of parentheses")
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        self.depth -= 1
        return tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._take("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)

    def _one(self) -> Test:
        negated = False
        while self._take("not"):
            negated = not negated
        if self._take("("):
            test = self._either()
            self._need(")")
        else:
            test = self._comparison()
        return _not(test) if negated else test

    def _comparison(self) -> Test:
        column, kind = self._column()
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return lambda row: (row[column] is None) != negated
        negated = self._take("not")
        if self._take("in"):
            test = self._in(column, kind)
        elif self._take("like"):
            test = self._like(column, kind)
        elif negated:
            raise self._expected("'in' or 'like'")
        elif self._next().kind == "sign" and self._next().text in _ORDER:
            compare = _ORDER[self._next().text]
            self.at += 1
            wanted = self._literal(kind)
            return lambda row: row[column] is not None and compare(row[column], wanted)
        elif kind is Kind.FLAG:
            return lambda row: bool(row[column])
        else:
            raise self._expected("a comparison (=, !=, <, <=, >, >=, like, in, is null)")
        return (lambda row: row[column] is not None and not test(row)) if negated else test

    def _column(self) -> tuple[str, Kind]:
        token = self._next()
        name = token.text.lower()
        if token.kind != "word" or name not in self.columns:
            raise self._expected(f"a column ({', '.join(self.columns)})")
        self.at += 1
        return name, self.columns[name]

    def _in(self, column: str, kind: Kind) -> Test:
        self._need("(")
        wanted = {self._literal(kind)}
        while self._take(","):
            wanted.add(self._literal(kind))
        self._need(")")
        return lambda row: row[column] in wanted

    def _like(self, column: str, kind: Kind) -> Test:
        if kind is not Kind.TEXT:
            raise PreconditionError(f"--where: '{column}' is {kind.value}; 'like' is for texts")
        pattern = self._literal(kind)
        matches = re.compile(_expression(pattern), re.DOTALL)
        return lambda row: row[column] is not None and matches.fullmatch(row[column]) is not None

    def _literal(self, kind: Kind) -> Any:
        token = self._next()
        value = _value(token, kind)
        if value is None:
            raise self._expected(kind.value)
        self.at += 1
        return value


def _expression(pattern: str) -> str:
    """Each part between two % where it comes first: to try further places finds nothing more, and may take
    for ever."""
    texts = ["".join("." if sign == "_" else re.escape(sign) for sign in part) for part in pattern.split("%")]
    if len(texts) == 1:
        return texts[0]
    first, *between, last = texts
    return first + "".join(f"(?>.*?{text})" for text in between if text) + ".*" + last


def _not(test: Test) -> Test:
    return lambda row: not test(row)


def _value(token: Token, kind: Kind) -> Any:
    if kind is Kind.NUMBER:
        return int(token.text) if token.kind == "number" and len(token.text) <= _DIGITS else None
    if kind is Kind.FLAG:
        return {"true": True, "false": False}.get(token.text.lower()) if token.kind == "word" else None
    if token.kind != "text":
        return None
    text = token.text[1:-1].replace("''", "'")
    return text if kind is Kind.TEXT else _time(text)


def _time(text: str) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
