"""What the doctor sees, and how all is looked at side by side: each look has a deadline, none ends another.

The command brings the looks and prints the findings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from icestream.api.errors import ConfigError, IcestreamError

Discreet = Callable[[str], str]


class Sign(StrEnum):
    FINE = "fine"
    NOTICE = "notice"
    WRONG = "wrong"

    @property
    def mark(self) -> str:
        return {"fine": "✓", "notice": "!", "wrong": "✗"}[self.value]


@dataclass(frozen=True)
class Finding:
    """One thing, what is so, and what to do next."""

    sign: Sign
    what: str
    fact: str
    advice: str = ""


def fine(what: str, fact: str) -> Finding:
    return Finding(Sign.FINE, what, fact)


def notice(what: str, fact: str, advice: str) -> Finding:
    return Finding(Sign.NOTICE, what, fact, advice)


def wrong(what: str, fact: str, advice: str) -> Finding:
    return Finding(Sign.WRONG, what, fact, advice)


@dataclass(frozen=True)
class Look:
    """Something to look at; what it finds is told even if it never comes back."""

    what: str
    findings: Callable[[], Iterable[Finding]]


@dataclass
class _Looking:
    """A look under way, in a thread of its own that may be left behind."""

    look: Look
    found: list[Finding] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        threading.Thread(target=self._run, name=f"doctor-{self.look.what}", daemon=True).start()

    def _run(self) -> None:
        what = self.look.what
        try:
            for finding in self.look.findings():
                self.found.append(finding)
        except ConfigError as error:
            self.found += [
                wrong(what, str(problem).rstrip("."), "correct this setting") for problem in error.problems
            ]
        except IcestreamError as error:
            self.found.append(wrong(what, str(error), "see what it says, then ask again"))
        except Exception as error:  # whatever a client raises; its text may have what an inner host said
            fact = f"the answer is strange ({type(error).__name__})"
            self.found.append(wrong(what, fact, "check that the address is that of the right program"))
        finally:
            self.is_over.set()


def looked(looks: Sequence[Look], seconds: float, discreet: Discreet) -> Iterator[Finding]:
    """All looks at once; their findings in order, each as soon as those before it are told."""
    under_way = [_Looking(look) for look in looks]
    deadline = time.monotonic() + seconds
    for one in under_way:
        one.begin()
    for one in under_way:
        in_time = one.is_over.wait(max(0.0, deadline - time.monotonic()))
        found = list(one.found)
        if not in_time:
            fact = f"no answer in {seconds:.0f} s"
            found.append(wrong(one.look.what, fact, "check address and network, or give it more --timeout"))
        for finding in found:
            yield replace(
                finding,
                what=discreet(finding.what),
                fact=discreet(finding.fact),
                advice=discreet(finding.advice),
            )
