"""A bucket and a prefix as the target of a job: its commits are entries of a ledger. Used by the sink
manager, through `sink`."""

from __future__ import annotations

import datetime as dt
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.config import Config
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    FatalError,
    Problem,
    SinkUnavailable,
)
from icestream.api.history import TableCommit
from icestream.api.sink import Commit, Receipt, Target, TargetAudit, Unfinished
from icestream.connectors.s3.commits.audit import audit_of
from icestream.connectors.s3.commits.ledger import KEPT, Entry, Ledger, Newest
from icestream.connectors.s3.commits.publish import abort_all, complete_all
from icestream.connectors.s3.commits.staged import StagedObject, of_payload
from icestream.connectors.s3.commits.sweep import sweep
from icestream.connectors.s3.keys import AT_LEAST_ONCE, EXISTING
from icestream.connectors.s3.layout import Layout, layout_of
from icestream.connectors.s3.probes import keeps_conditions, no_conditions
from icestream.connectors.s3.settings import is_folder, layout_config, parsed
from icestream.connectors.s3.stores.opening import store_settings
from icestream.connectors.s3.stores.store import ObjectStore

_LONGEST_NAME: Final = 255
"""Bytes of a name in a file system."""
_KEEPING: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Stores of this process that are known to keep conditions."""


@dataclass(frozen=True)
class S3Plan:
    """What tasks are told. Plain data: it crosses process boundaries."""

    layout: Layout
    job: str
    now_ms: int
    """The one moment of the batch, for whatever goes by the clock."""
    # Not in the repr: secrets are among them.
    store: Mapping[str, str] = field(repr=False)
    only: frozenset[str] | None = None
    """The keys of the objects that are staged; None: all."""


class S3Target(Target):
    def __init__(self, job: str, config: Config, store: ObjectStore) -> None:
        self._settings = parsed(config)
        self._top = self._settings["topics.dir"]
        self.name = f"{store.name}/{self._top}".rstrip("/")
        self._job = job
        self._config = config
        self._store = store
        self._ledger = Ledger(store, self._top, job)
        self._layout = self._layout_of(config)
        self._head: Entry | None = None
        """The newest entry as far as is known; its objects are visible, but those that are lost."""
        self._lost: Sequence[StagedObject] = ()

    def _layout_of(self, config: Config) -> Layout:
        return layout_of(parsed(config), longest_step=_LONGEST_NAME if is_folder(self._config) else None)

    # -- what is there --

    def found(self) -> FoundCheckpoint:
        self._settle(self._ledger.newest())
        checkpoint = self._head.checkpoint if self._head else None
        return FoundCheckpoint(checkpoint, target=self.name, target_id=self._ledger.name)

    def _settle(self, newest: Newest) -> None:
        """Know the newest entry, with its objects visible."""
        self._head, self._lost = newest.entry, ()
        if newest.entry is not None and not newest.is_done:
            # What the config says now counts also for a commit that was stopped by somebody's object.
            self._publish(replace(newest.entry, objects=self._replacing(newest.entry.objects)))

    def _replacing(self, objects: Sequence[StagedObject]) -> Sequence[StagedObject]:
        if self._settings[EXISTING] != "replace":
            return objects
        return [one if one.replaces else replace(one, replaces=self._tag(one)) for one in objects]

    def _publish(self, entry: Entry) -> None:
        lost = complete_all(self._store, entry.objects)
        if lost and not self._ledger.is_done(entry.number):
            self._lost = lost
            return
        self._ledger.done(entry.number)

    def commits(self, most: int) -> Sequence[TableCommit]:
        """Of the ledger, which keeps the last hundred."""
        found = self._ledger.last(min(most + 1, KEPT))
        earlier: list[Entry | None] = [*(entry for entry, _ in found[1:]), None]
        return [
            self._commit_of(entry, put, before) for (entry, put), before in zip(found, earlier, strict=True)
        ][:most]

    def _commit_of(self, entry: Entry, put: dt.datetime, before: Entry | None) -> TableCommit:
        totals = entry.checkpoint.totals
        old = before.checkpoint.totals if before else Counts() if entry.number == 1 else None
        return TableCommit(
            self.name,
            str(entry.number),
            int(put.timestamp() * 1000),
            "append",
            len(entry.objects),
            sum(one.records for one in entry.objects if one.is_value),
            sum(one.size for one in entry.objects),
            totals.rejected - old.rejected if old else None,
            totals.filtered - old.filtered if old else None,
            commit=entry.checkpoint.commit,
        )

    def audit(self) -> TargetAudit:
        """Without finishing what is not finished: who audits changes nothing."""
        newest = self._ledger.newest()
        checkpoint = newest.entry.checkpoint if newest.entry else None
        found = FoundCheckpoint(checkpoint, target=self.name, target_id=self._ledger.name)
        if not newest.is_done:
            return TargetAudit(found)
        return audit_of(self._store, self._layout, self._job, found)

    # -- what the store has lost --

    def unfinished(self) -> Unfinished | None:
        if not self._lost or self._head is None:
            return None
        entry, first = self._head, self._lost[0]
        written_by = entry.written_by
        try:
            layout = self._layout_of(written_by["config"])
            now_ms = int(written_by["now_ms"])
        except (KeyError, TypeError, ValueError) as error:
            raise FatalError(
                f"{self._ledger.name}: commit {entry.number} cannot be read ({error})"
            ) from error
        keys = frozenset(one.key for one in self._lost)
        batch = Batch(first.batch, entry.checkpoint.start, entry.checkpoint.offsets)
        lost = (
            f"{self._store.name} has lost {len(keys)} uploads of commit {entry.number}, such as "
            f"'{first.key}' with offsets {first.first} to {first.last} of {first.partition}"
        )
        return Unfinished(batch, self._plan(layout, now_ms, keys), lost)

    def finish(self, staged: Staged) -> None:
        assert self._head is not None
        again = {one.key: one for one in of_payload(staged.payload)}
        missing = [one.key for one in self._lost if one.key not in again]
        if missing:
            abort_all(self._store, list(again.values()))
            raise FatalError(
                f"'{missing[0]}' is lost, and its records make other objects now; undo what was changed in "
                "the config since, and restart the connector"
            )
        newest = self._ledger.newest()
        if newest.is_done or newest.entry is None or newest.entry.number != self._head.number:
            # Readers may have taken away by now what another manager has finished.
            abort_all(self._store, list(again.values()))
            raise CommitConflict(f"{self.name}: somebody else has finished commit {self._head.number}")
        left = complete_all(
            self._store, [replace(again[one.key], replaces=one.replaces) for one in self._lost]
        )
        if left:
            raise SinkUnavailable(f"{self._store.name}: '{left[0].key}' could not be completed yet")
        self._lost = ()
        self._ledger.done(self._head.number)

    # -- batches --

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> S3Plan:
        self._refuse_unconditional()
        return self._plan(self._layout, int(time.time() * 1000))

    def _plan(self, layout: Layout, now_ms: int, only: frozenset[str] | None = None) -> S3Plan:
        return S3Plan(layout, self._job, now_ms, store_settings(self._config), only)

    def _refuse_unconditional(self) -> None:
        if self._settings[AT_LEAST_ONCE] or is_folder(self._config) or self._store in _KEEPING:
            return
        if not keeps_conditions(self._store, self._top):
            raise ConfigError([Problem("store.url", no_conditions(self._store))])
        _KEEPING.add(self._store)

    def commit(self, commit: Commit) -> Receipt:
        self._expect(commit.expect)
        head = self._head
        objects = self._named_once(of_payload(commit.staged.payload), commit.checkpoint)
        entry = Entry(
            head.number + 1 if head else 1, commit.checkpoint, objects, self._written_by(commit.plan)
        )
        self._ledger.add(entry)
        self._head = entry
        try:
            self._publish(entry)
        except SinkUnavailable as error:
            # It has landed: whoever asks next goes on with it.
            self._head = None
            raise CommitUnknown(f"{error}; the commit has landed, and its objects follow") from error
        if self._lost:
            raise CommitUnknown(f"{self._store.name} has lost uploads; the commit has landed")
        self._ledger.prune(entry.number)
        return Receipt(commit.checkpoint, commit.checkpoint.commit, [one.size for one in objects])

    def _written_by(self, plan: Any) -> dict[str, Any]:
        """Enough to write objects again: of a config only what their layout depends on."""
        now_ms = plan.now_ms if isinstance(plan, S3Plan) else 0
        return {"config": layout_config(self._config), "now_ms": now_ms}

    def _expect(self, expect: Checkpoint | None) -> None:
        """Refuse a batch that did not start from the newest entry."""
        wanted = expect.commit if expect else None
        if self._lost or self._head is None or self._head.checkpoint.commit != wanted:
            self._settle(self._ledger.newest())
        if (self._head.checkpoint.commit if self._head else None) != wanted:
            raise CommitConflict(f"{self.name} has another checkpoint of the job: somebody else committed")
        if self._lost:
            raise SinkUnavailable(f"{self.name}: the last commit is not finished; start the connector once")

    def _named_once(self, objects: Sequence[StagedObject], checkpoint: Checkpoint) -> list[StagedObject]:
        """The objects, with what each replaces; two of the same name are of topics that a transform made
        one."""
        twice = [key for key, count in Counter(one.key for one in objects).items() if count > 1]
        if twice:
            raise FatalError(
                f"two objects of a batch would have the name '{twice[0]}': topics that a transform gives one "
                "name need topics.dir of their own, in connectors of their own"
            )
        replaces = self._settings[EXISTING] == "replace"
        return [
            replace(one, replaces=self._tag(one)) if replaces or _is_read_again(one, checkpoint) else one
            for one in objects
        ]

    def _tag(self, one: StagedObject) -> str | None:
        there = self._store.facts(one.key)
        return there.tag if there is not None else None

    # -- what is left over --

    def discard(self, staged: Staged) -> None:
        abort_all(self._store, of_payload(staged.payload))

    def sweep(self, landed: str, now: dt.datetime) -> int:
        newest = self._ledger.newest()
        if newest.entry is None or newest.entry.checkpoint.commit != landed or not newest.is_done:
            return 0
        self._ledger.prune_all()
        return sweep(self._store, self._layout.names, newest.entry.checkpoint, now)


def _is_read_again(one: StagedObject, checkpoint: Checkpoint) -> bool:
    """Whether offsets of the object were read before, and moved back by hand since."""
    spans = checkpoint.earlier.get(one.partition, ())
    # Of a topic that is gone the bucket has the only copy.
    return any(span.first <= one.first < span.next and not span.is_gone for span in spans)
