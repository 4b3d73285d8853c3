"""Both answers to one request, side by side: equal, different as agreed, or different."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.parity.differences import ALLOWED
from tests.parity.sending import Answer, Side, send
from tests.parity.table import Request

_SETTLE_S: Final = 60.0


@dataclass(frozen=True)
class Outcome:
    request: Request
    theirs: Answer
    ours: Answer
    allowed: str = ""
    """The agreed difference that makes them equal."""

    @property
    def agrees(self) -> bool:
        return _same(self.theirs, self.ours)

    @property
    def is_good(self) -> bool:
        return self.agrees or bool(self.allowed)

    @property
    def has_created(self) -> bool:
        """Whether a connector may have come to be on either side, even if that was not said."""
        return self.request.may_create and any(
            answer.status == 201 or self.request.at_once > 1 for answer in (self.theirs, self.ours)
        )

    def __str__(self) -> str:
        differing = "\n  ".join(_differing(self.theirs.body, self.ours.body, "body"))
        return f"{self.request}\n  theirs {_shown(self.theirs)}\n  ours   {_shown(self.ours)}\n  {differing}"


def compare(request: Request, theirs: Side, ours: Side) -> Outcome:
    deadline = time.monotonic() + (_SETTLE_S if request.settles else 0.0)
    while True:
        outcome = _judged(Outcome(request, send(theirs, request), send(ours, request)))
        if outcome.is_good or time.monotonic() > deadline:
            return outcome
        time.sleep(0.1)


def _judged(outcome: Outcome) -> Outcome:
    if outcome.agrees:
        return outcome
    names = [outcome.request.differs] if outcome.request.differs else ALLOWED
    for name in names:
        difference = ALLOWED[name]
        if not outcome.request.differs and not difference.is_everywhere:
            continue
        if difference.applies(outcome.request, outcome.theirs, outcome.ours):
            return replace(outcome, allowed=name)
    return outcome


def _same(one: Answer, other: Answer) -> bool:
    # As text: the order of keys counts.
    return (one.status, dict(one.headers), json.dumps(one.body)) == (
        other.status,
        dict(other.headers),
        json.dumps(other.body),
    )


def _shown(answer: Answer) -> str:
    return f"{answer.status} {dict(answer.headers)} {json.dumps(answer.body, ensure_ascii=False)[:600]}"


def _differing(theirs: Any, ours: Any, at: str = "") -> Iterator[str]:
    """Where two bodies differ, for people who read a failed test."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and list(theirs) == list(ours):
        for key in theirs:
            yield from _differing(theirs[key], ours[key], f"{at}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _differing(one, other, f"{at}[{index}]")
    elif theirs != ours or json.dumps(theirs) != json.dumps(ours):
        yield f"{at}: {str(theirs)[:300]} <> {str(ours)[:300]}"
