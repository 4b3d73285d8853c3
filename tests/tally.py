"""What was compared with the real thing: how many cases of each subject, how many agreed. Told at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

REST = "REST"


@dataclass
class Tally:
    """Subject → what became of its cases (`tried`, `agreed`, `allowed`) → how many."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, subject: str, *, tried: int = 1, agreed: int = 0, allowed: int = 0) -> None:
        self.counts.setdefault(subject, Counter()).update(tried=tried, agreed=agreed, allowed=allowed)

    def merge(self, packed: Mapping[str, Mapping[str, int]]) -> None:
        """What another process of this run has counted."""
        for subject, counts in packed.items():
            self.add(subject, **counts)

    def packed(self) -> dict[str, dict[str, int]]:
        return {subject: dict(counts) for subject, counts in self.counts.items()}

    def lines(self) -> list[str]:
        return [_line(subject, self.counts[subject]) for subject in sorted(self.counts)]


def _line(subject: str, counts: Mapping[str, int]) -> str:
    what = "requests" if subject == REST else "cases"
    allowed = f", {counts['allowed']} allowed differences" if counts["allowed"] else ""
    return f"parity {subject}: {counts['agreed']} of {counts['tried']} {what} agree{allowed}"
