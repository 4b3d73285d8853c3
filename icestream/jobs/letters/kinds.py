"""Which dead letters are of one kind: the same stage and class, and a reason that differs only in its values.

Pure. `DeadLetterFilter` asks for the id of a kind, the desk counts by it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BLANK: Final = "…"
_LONGEST_QUOTED: Final = 40
"""Names of fields are shorter; what is longer is a value."""
_LONGEST_REASON: Final = 300
_WORD: Final = 20
_QUOTED: Final = re.compile(
    r"'(?!(?<=\w')(?:t|s|re|ve|ll|d)\b)[^'\n]*'|\"[^\"\n]*?\.\.\.(?=,)|\"[^\"\n]*\"|`[^`\n]*`|\{[^{}\n]*\}|\[[^\[\]\n]*\]"
)
"""Also what was cut before its end, and JSON; not from `can't` to the next such word."""
_NAME: Final = re.compile(r"[^\W\d][\w.$/ -]*")
_BEFORE_A_VALUE: Final = re.compile(r"\b(is|was|value|got|found|text)[\s:=(]*$", re.IGNORECASE)
"""`field 'amount' is 'x'`: the first is a name, and what follows such a word is none."""
_NUMBER: Final = re.compile(
    r"(?P<word>\b(?:u?int(?:8|16|32|64|96|128)|float(?:16|32|64)|decimal(?:32|64|128|256)|(?:date|time)(?:32|64)"
    r"|utf-?(?:8|16|32)|ucs-?[24]|iso-?8859-\d{1,2}|latin-?1|base64|md5|sha-?(?:1|256|512)|byte 0)\b)"
    r"|\b0x[0-9a-f]+|[-+]?\d[\d.,:TZ+-]*\d|[-+]?\d",
    re.IGNORECASE,
)
"""Types and encodings are words, whatever their number: a list, because values may have numbers, too."""


@dataclass(frozen=True)
class LetterKind:
    """What dead letters of one kind have in common."""

    stage: str
    exception: str
    reason: str
    """Without numbers, and without quoted texts that are values."""

    @property
    def id(self) -> str:
        """The same on every worker: it travels in addresses."""
        whole = "\0".join((self.stage, self.exception, self.reason))
        return hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:16]


def kind_of(context: Mapping[str, str]) -> LetterKind:
    """The kind of a dead letter, by Kafka Connect's headers about the error."""
    return LetterKind(
        context.get("stage", ""),
        context.get("exception.class.name", ""),
        blanked(context.get("exception.message", "")),
    )


def blanked(reason: str) -> str:
    """`value 12 of 'amount' does not fit int` says the same of every value."""
    first = reason.strip().splitlines()[0] if reason.strip() else ""
    kept: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(first[: 4 * _LONGEST_REASON]):
        kept.append(_NUMBER.sub(_unless_word, first[at : quoted.start()]))
        inner = quoted[0][1:-1]
        is_name = len(inner) <= _LONGEST_QUOTED and _NAME.fullmatch(inner) is not None
        is_value = _BEFORE_A_VALUE.search(first[max(0, quoted.start() - _WORD) : quoted.start()]) is not None
        kept.append(quoted[0] if is_name and not is_value else BLANK)
        at = quoted.end()
    kept.append(_NUMBER.sub(_unless_word, first[at : 4 * _LONGEST_REASON]))
    told = "".join(kept)
    return told if len(told) <= _LONGEST_REASON else told[: _LONGEST_REASON - 1] + BLANK


def _unless_word(number: re.Match[str]) -> str:
    return number["word"] or BLANK
