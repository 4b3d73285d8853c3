"""Aborts uploads of batches that died: they cost money, and nobody sees them. Called by `target` after a
commit.

An upload does not tell whose it is, so only those are aborted that nobody can need: of records that are
before the checkpoint, a day old, and in no ledger's open entry.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from icestream.api.checkpoint import Checkpoint
from icestream.api.offsets import Partition
from icestream.connectors.s3.commits.ledger import open_entries
from icestream.connectors.s3.names import ObjectNames
from icestream.connectors.s3.stores.store import ObjectStore, OpenUpload

_AGE: Final = dt.timedelta(days=1)
"""No batch takes as long, whoever's it is."""


def sweep(store: ObjectStore, names: ObjectNames, checkpoint: Checkpoint, now: dt.datetime) -> int:
    """How many uploads were aborted."""
    dead: list[OpenUpload] = []
    for topic in sorted({partition.topic for partition in checkpoint.partitions}):
        prefix = names.folder(topic, "")
        ours = _name_of(topic, names)
        for upload in store.open_uploads(prefix):
            found = ours.search(upload.key)
            if found is None or upload.begun > now - _AGE:
                continue
            at = checkpoint.partitions.get(Partition(topic, int(found[1])))
            if at is not None and int(found[2]) < at.next:
                dead.append(upload)
    if not dead:
        return 0
    needed = {one.upload.id for entry in open_entries(store, names.topics_dir) for one in entry.objects}
    gone = [upload for upload in dead if upload.id not in needed]
    for upload in gone:
        store.abort(upload.key, upload.id)
    return len(gone)


def _name_of(topic: str, names: ObjectNames) -> re.Pattern[str]:
    delim = re.escape(names.file_delim)
    return re.compile(rf"{re.escape(topic)}{delim}([0-9]{{1,10}}){delim}([0-9]{{1,20}})(?:\.[^/]*)?$")
