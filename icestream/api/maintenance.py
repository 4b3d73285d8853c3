"""What is done to a target so that it stays fast: how it is asked for, and what it has cost.

The sink manager asks a `Target` to maintain itself between batches (`api/sink.py`); `icestream table` asks
the `Maintainer` of one target by hand. What a step does is the connector's own; these are the words for it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Protocol


@dataclass(frozen=True)
class MaintenanceRhythm:
    """When the targets of a connector are looked at."""

    seconds: float
    """From one look at a target to the next, if it has had a commit since."""
    commits: int
    """After so many commits at once."""
    aside: bool = True
    """Whether batches go on meanwhile; otherwise it is done between two of them."""


@dataclass(frozen=True)
class MaintenanceStep:
    """One thing that was done, or was found to be unnecessary."""

    name: str
    """Such as `compaction`."""
    counted: str
    """What `before` and `after` count, such as `data files`."""
    before: int = 0
    after: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    seconds: float = 0.0
    note: str = ""
    """What else there is to say, in words."""
    error: str | None = None
    is_conflict: bool = False
    """Somebody else changed the target meanwhile; nothing is wrong, and the next run does it."""

    @property
    def did_something(self) -> bool:
        return bool(self.before != self.after or self.removed_files or self.note)


@dataclass(frozen=True)
class MaintenanceRun:
    """All steps of one turn, for one target."""

    target: str
    at: dt.datetime
    steps: Sequence[MaintenanceStep] = ()

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def error(self) -> str | None:
        """What went wrong; that others were first is only in the step."""
        said = [f"{step.name}: {step.error}" for step in self.steps if step.error and not step.is_conflict]
        return "; ".join(said) or None

    @property
    def did_something(self) -> bool:
        return any(step.did_something or step.error for step in self.steps)

    def shown(self) -> dict[str, object]:
        """Plain data, for the status."""
        return {
            "target": self.target,
            "at_ms": int(self.at.timestamp() * 1000),
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "steps": [{**asdict(step), "seconds": round(step.seconds, 3)} for step in self.steps],
        }


@dataclass(frozen=True)
class HistoryEntry:
    """One commit of a target, for people."""

    id: str
    at: dt.datetime
    operation: str
    added_files: int = 0
    removed_files: int = 0
    added_rows: int = 0
    removed_rows: int = 0
    total_files: int | None = None
    total_rows: int | None = None
    by: str = ""
    """Which job or what maintenance made it, where that is known."""
    names: Sequence[str] = ()
    """Branches and tags that end here."""


class Maintainer(Protocol):
    """Of one target. Its commits are refused where others have changed what they are about.

    All but `run` may raise an IcestreamError; with `dry_run` nothing is changed.
    """

    def run(
        self, now: dt.datetime, *, thorough: bool, turn: AbstractContextManager[object]
    ) -> MaintenanceRun:
        """What is due by the config, with `thorough` also what takes long; no step if it is not switched on.

        Its commits are made within `turn`, as those of the job are: so neither has to be made again because
        of the other. What fails is in the steps.
        """

    def compact(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]: ...

    def expire(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]: ...

    def orphans(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]: ...

    def history(self) -> Sequence[HistoryEntry]:
        """The oldest first."""

    def close(self) -> None:
        """Nobody will ask it anything more."""
        return
