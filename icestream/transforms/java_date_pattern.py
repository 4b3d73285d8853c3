"""Patterns of java.text.SimpleDateFormat, cut into letters and literal text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LETTERS: Final = "GyMdkHmsSEDFwWahKzZYuXL"
_TEXT_FROM: Final = 3
"""So many letters of a month mean its name."""
_MOST_ISO_ZONE: Final = 3
_PIECES: Final = re.compile(r"''|'((?:[^']|'')*)'|(([a-zA-Z])\3*)|([^a-zA-Z']+)|(')", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """One field of a pattern, or literal text between fields (then there is no letter)."""

    letter: str
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        if self.letter in ("M", "L"):
            return self.count < _TEXT_FROM
        return self.letter != "" and self.letter not in "GEazZX"


def tokens(pattern: str) -> tuple[Token, ...]:
    """Raises ValueError with the words of Java's IllegalArgumentException."""
    found: list[Token] = []
    for match in _PIECES.finditer(pattern):
        if match[2]:
            found.append(_field(match[3], len(match[2])))
        elif match[5]:
            raise ValueError("Unterminated quote")
        else:
            literal = "'" if match[0] == "''" else match[4] or (match[1] or "").replace("''", "'")
            if found and not found[-1].letter:
                literal = found.pop().text + literal
            found.append(Token("", 0, literal))
    return tuple(token for token in found if token.letter or token.text)


def _field(letter: str, count: int) -> Token:
    if letter not in LETTERS:
        raise ValueError(f"Illegal pattern character '{letter}'")
    if letter == "X" and count > _MOST_ISO_ZONE:
        raise ValueError(f"invalid ISO 8601 format: length={count}")
    return Token(letter, count)
