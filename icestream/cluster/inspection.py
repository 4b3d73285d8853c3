"""Looks into what a connector has done: its offsets, its dead letters, its books. Used by the console.

Each call asks Kafka and the targets, with the values of the config's placeholders, and keeps nothing of them.
The service has one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icestream.api.errors import BadOffsets, NotFoundError
from icestream.api.history import TableCommit
from icestream.api.offset_admin import OffsetAdmin, OffsetEntry, PartitionPosition

if TYPE_CHECKING:
    from icestream.jobs.audits.verdicts import TargetVerdict
    from icestream.jobs.letters.desk import Letter, LetterDesk, LetterPage, ReplayPlan, ReplayProgress
    from icestream.jobs.letters.replay import Request
    from icestream.jobs.offsets.preview import MovePreview
    from icestream.jobs.publishing.dead_letters import DeadLetterFilter

Audit = Callable[[str, Mapping[str, str], bool], "list[TargetVerdict]"]
"""Compares the books of a connector with this name and config; true: row by row."""
TargetCommits = Callable[[str, Mapping[str, str], int], "list[TableCommit]"]
"""The last commits of the targets of a connector with this name and config, at most so many."""
JobConfig = Callable[[str], AbstractContextManager[Mapping[str, str]]]
"""The config of a connector as its job has it, secrets included; NotFoundError if there is none."""


@dataclass(frozen=True)
class Inspection:
    config_of: JobConfig
    offsets: OffsetAdmin | None
    dead_letters: LetterDesk | None
    audit: Audit | None
    target_commits: TargetCommits | None = None
    tell: Callable[[str, str, str], None] = lambda name, kind, text: None
    """Told of what was done: the connector, the kind of event, a sentence."""

    # Offsets

    def positions(self, name: str) -> list[PartitionPosition] | None:
        """Of a sink's partitions; None for a source."""
        with self.config_of(name) as config:
            return self._offset_admin().positions(name, config)

    def preview(self, name: str, entries: Sequence[OffsetEntry] | None) -> list[MovePreview]:
        """What a change would do, None: a reset. BadOffsets if it would be refused. Empty for a source."""
        from icestream.jobs.offsets.entries import moves_from
        from icestream.jobs.offsets.preview import preview

        with self.config_of(name) as config:
            positions = self._offset_admin().positions(name, config, entries or ())
        if positions is None:
            return []
        return preview(positions, None if entries is None else moves_from(entries))

    # Dead letters

    def letters(self, name: str, wanted: DeadLetterFilter, cursor: str | None) -> LetterPage:
        with self.config_of(name) as config:
            return self._desk().page(name, config, wanted, cursor)

    def letter(self, name: str, partition: int, offset: int) -> Letter:
        with self.config_of(name) as config:
            return self._desk().letter(name, config, partition, offset)

    def replay_plan(self, name: str, request: Request) -> ReplayPlan:
        with self.config_of(name) as config:
            return self._desk().plan(name, config, request)

    def replay(self, name: str, request: Request) -> ReplayProgress:
        with self.config_of(name) as config:
            begun = self._desk().replay(name, config, request)
        self.tell(name, "replay", f"{begun.total:,} dead letters are sent again to their topics")
        return begun

    def replay_progress(self, name: str) -> ReplayProgress | None:
        return self._desk().progress(name)

    # Commits

    def commits(self, name: str, most: int) -> list[TableCommit]:
        """As the targets themselves remember them, the newest first."""
        if self.target_commits is None:
            raise NotFoundError("this worker has no access to the targets of its connectors")
        with self.config_of(name) as config:
            return self.target_commits(name, config, most)

    # The books

    def verify(self, name: str, *, deep: bool) -> list[TargetVerdict]:
        if self.audit is None:
            raise NotFoundError("this worker has no access to the targets of its connectors")
        with self.config_of(name) as config:
            return self.audit(name, config, deep)

    def _offset_admin(self) -> OffsetAdmin:
        if self.offsets is None:
            raise BadOffsets("this worker has no access to offsets")
        return self.offsets

    def _desk(self) -> LetterDesk:
        if self.dead_letters is None:
            raise NotFoundError("this worker has no access to dead letters")
        return self.dead_letters
