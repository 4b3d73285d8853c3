"""A bucket and a prefix as the target of a job: its commits are entries of a ledger. Used by the sink
manager, through `sink`."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icestream.api.batch import Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.config import Config
from icestream.api.errors import CommitConflict, CommitUnknown, FatalError, SinkUnavailable
from icestream.api.sink import Commit, Receipt, Target
from icestream.connectors.s3.layout import Layout, layout_of
from icestream.connectors.s3.ledger import Entry, Ledger, Newest
from icestream.connectors.s3.publish import abort_all, complete_all
from icestream.connectors.s3.settings import EXISTING, is_folder, parsed
from icestream.connectors.s3.staged import StagedObject, of_payload
from icestream.connectors.s3.stores.opening import store_settings
from icestream.connectors.s3.stores.store import ObjectStore

_LONGEST_NAME = 255
"""Bytes of a name in a file system."""


@dataclass(frozen=True)
class S3Plan:
    """What tasks are told. Plain data: it crosses process boundaries."""

    layout: Layout
    now_ms: int
    """The one moment of the batch, for whatever goes by the clock."""
    # Not in the repr: secrets are among them.
    store: Mapping[str, str] = field(repr=False)


class S3Target(Target):
    def __init__(self, job: str, config: Config, store: ObjectStore) -> None:
        settings = parsed(config)
        self.name = f"{store.name}/{settings['topics.dir']}".rstrip("/")
        self._store = store
        self._ledger = Ledger(store, settings["topics.dir"], job)
        self._layout = layout_of(settings, longest_step=_LONGEST_NAME if is_folder(config) else None)
        self._store_settings = store_settings(config)
        self._replaces = settings[EXISTING] == "replace"
        self._head: Entry | None = None
        """The newest entry as far as is known; its objects are visible."""

    def found(self) -> FoundCheckpoint:
        self._head = self._settled(self._ledger.newest())
        checkpoint = self._head.checkpoint if self._head else None
        return FoundCheckpoint(checkpoint, target=self.name, target_id=self._ledger.name)

    def _settled(self, newest: Newest) -> Entry | None:
        """The newest entry, with all of its objects visible."""
        if newest.entry is not None and not newest.is_done:
            self._publish(newest.entry)
        return newest.entry

    def _publish(self, entry: Entry) -> None:
        lost = complete_all(self._store, entry.objects)
        if lost and not self._ledger.is_done(entry.number):
            first = lost[0]
            raise FatalError(
                f"{self._store.name} has lost {len(lost)} uploads of commit {entry.number}, such as "
                f"'{first.key}' with offsets {first.first} to {first.last} of {first.partition}"
            )
        self._ledger.done(entry.number)

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> S3Plan:
        return S3Plan(self._layout, int(time.time() * 1000), self._store_settings)

    def commit(self, commit: Commit) -> Receipt:
        head = self._expected(commit.expect)
        objects = self._named_once(of_payload(commit.staged.payload), commit.checkpoint)
        entry = Entry(head.number + 1 if head else 1, commit.checkpoint, objects)
        self._ledger.add(entry)
        try:
            self._publish(entry)
        except SinkUnavailable as error:
            # It has landed: whoever asks next goes on with it.
            self._head = None
            raise CommitUnknown(f"{error}; the commit has landed, and its objects follow") from error
        self._head = entry
        self._ledger.prune(entry.number)
        return Receipt(commit.checkpoint, commit.checkpoint.commit)

    def _expected(self, expect: Checkpoint | None) -> Entry | None:
        """The entry that the batch started from."""
        wanted = expect.commit if expect else None
        if self._head is None or self._head.checkpoint.commit != wanted:
            self._head = self._settled(self._ledger.newest())
        if (self._head.checkpoint.commit if self._head else None) != wanted:
            raise CommitConflict(f"{self.name} has another checkpoint of the job: somebody else committed")
        return self._head

    def _named_once(self, objects: Sequence[StagedObject], checkpoint: Checkpoint) -> list[StagedObject]:
        """The objects, with what each replaces; two of the same name are of topics that a transform made
        one."""
        keys = [one.key for one in objects]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FatalError(
                f"two objects of a batch would have the name '{twice}': topics that a transform gives one "
                "name need topics.dir of their own, in connectors of their own"
            )
        return [
            replace(one, replaces=self._tag(one))
            if self._replaces or _is_read_again(one, checkpoint)
            else one
            for one in objects
        ]

    def _tag(self, one: StagedObject) -> str | None:
        there = self._store.facts(one.key)
        return there.tag if there is not None else None

    def discard(self, staged: Staged) -> None:
        abort_all(self._store, of_payload(staged.payload))

    def sweep(self, landed: str, now: dt.datetime) -> int:
        return 0


def _is_read_again(one: StagedObject, checkpoint: Checkpoint) -> bool:
    """Whether offsets of the object were read before, and moved back by hand since."""
    spans = checkpoint.earlier.get(one.partition, ())
    return any(span.first <= one.first < span.next for span in spans)
