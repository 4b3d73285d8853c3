"""Makes the objects of a ledger entry visible. Repeatable, by whoever reads the entry. For `target`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.connectors.s3.commits.metadata import BATCH
from icestream.connectors.s3.commits.staged import StagedObject
from icestream.connectors.s3.stores.store import AnswerLost, Exists, NoSuchUpload, ObjectStore

_AT_ONCE: Final = 16


def complete_all(store: ObjectStore, objects: Sequence[StagedObject]) -> list[StagedObject]:
    """Complete every upload; those that are complete stay as they are.

    Returns the objects whose uploads the store has lost: they have to be written again.
    """
    if not objects:
        return []
    if len(objects) == 1:
        return [] if _complete(store, objects[0]) else [objects[0]]
    with ThreadPoolExecutor(min(_AT_ONCE, len(objects)), "s3-complete") as pool:
        ended = list(pool.map(lambda one: _complete(store, one), objects))
    return [one for one, is_there in zip(objects, ended, strict=True) if not is_there]


def _complete(store: ObjectStore, one: StagedObject) -> bool:
    """Whether the object is there."""
    try:
        store.complete(one.upload, one.replaces)
        return True
    except (Exists, NoSuchUpload, AnswerLost) as error:
        there = store.facts(one.key)
        if there is not None and there.metadata.get(BATCH) == one.batch:
            return True
        is_open = store.is_open(one.upload)
        if isinstance(error, AnswerLost) and is_open:
            raise
        if there is None and not is_open:
            return False
        if there is None and one.replaces is not None and isinstance(error, Exists):
            # What was to be replaced is gone: nobody is in the way any more.
            return _complete(store, replace(one, replaces=None))
        if there is not None and there.tag != one.replaces:
            owner = there.metadata.get(BATCH)
            whose = f"batch {owner}" if owner else "somebody else"
            raise FatalError(
                f"{store.name} has an object '{one.key}' of {whose}, and batch {one.batch} has committed "
                f"offsets {one.first} to {one.last} of {one.partition} under this name: move the other "
                "object away and restart the connector, or have it replaced with "
                "icestream.s3.existing.objects=replace; connectors need prefixes of their own"
            ) from error
        if not is_open:
            return False
        raise SinkUnavailable(f"{store.name}: '{one.key}' could not be completed yet") from error


def abort_all(store: ObjectStore, objects: Sequence[StagedObject]) -> None:
    with ThreadPoolExecutor(_AT_ONCE, "s3-abort") as pool:
        list(pool.map(lambda one: store.abort(one.key, one.upload.id), objects))
