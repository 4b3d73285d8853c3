"""Stages the records of one task as uploads. Runs in a Spark task; `objects` says which record goes where.

An object is gathered in memory, or on disk if it is large, and uploaded when it is complete: by then its
metadata are known. Uploads go on beside the work on the next records.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Final

import numpy as np

from icestream.api.batch import Failure, Left, Staged
from icestream.api.errors import IcestreamError
from icestream.api.offsets import Partition
from icestream.api.sink import WriterTask, Written
from icestream.connectors.s3.commits.metadata import about
from icestream.connectors.s3.commits.staged import StagedObject
from icestream.connectors.s3.objects import ObjectPart, TopicPartitionObjects
from icestream.connectors.s3.stores.opening import process_store
from icestream.connectors.s3.target import S3Plan
from icestream.records.origins import RowOrigins
from icestream.records.records import Records

_IN_MEMORY: Final = 2**20
"""Bytes of an object; what is larger goes to disk."""
_AT_ONCE: Final = 4
_MOST_WAITING: Final = 16
"""Complete objects that wait for their upload."""


class ObjectWriter:
    def __init__(self, task: WriterTask) -> None:
        (self._target,) = task.targets
        self._stages = task.stages
        self._may_leave = task.may_leave
        self._batch = task.batch
        self._plan: S3Plan = self._target.plan
        self._objects: dict[Partition, TopicPartitionObjects] = {}
        self._open: dict[str, IO[bytes]] = {}
        """By key."""
        self._uploads: list[Future[StagedObject]] = []
        self._pool = ThreadPoolExecutor(_AT_ONCE, "s3-upload")
        self._rows = 0

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        fresh = origins.at_or_after(self._target.start)
        failed: dict[int, Failure] = {}
        skipped: list[int] = []
        for code, partition in enumerate(origins.partitions):
            mine = fresh & (origins.codes == code)
            groups = [some for group in records if len(some := group.take(np.flatnonzero(mine[group.rows])))]
            if not groups:
                continue
            taken = self._of(partition).take(groups, self._plan.now_ms)
            failed |= taken.failed
            skipped += taken.skipped
            self._append(partition, taken.parts)
        return Written(failed, skipped)

    def _of(self, partition: Partition) -> TopicPartitionObjects:
        if partition not in self._objects:
            self._objects[partition] = TopicPartitionObjects(self._plan.layout, partition)
        return self._objects[partition]

    def _append(self, partition: Partition, parts: Iterable[ObjectPart]) -> None:
        for part in parts:
            if not self._stages or (self._plan.only is not None and part.key not in self._plan.only):
                continue
            if part.key not in self._open:
                self._open[part.key] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
            self._open[part.key].write(part.data)
            if part.is_last:
                self._send(partition, part, self._open.pop(part.key))

    def _send(self, partition: Partition, part: ObjectPart, content: IO[bytes]) -> None:
        waiting = [one for one in self._uploads if not one.done()]
        if len(waiting) >= _MOST_WAITING:
            waiting[0].result()
        if part.is_value:
            self._rows += part.records
        self._uploads.append(self._pool.submit(self._upload, partition, part, content))

    def _upload(self, partition: Partition, part: ObjectPart, content: IO[bytes]) -> StagedObject:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        assert part.offsets is not None
        facts = about(self._plan.job, self._batch, partition, part.offsets, is_value=part.is_value)
        with content:
            upload = process_store(self._plan.store).upload(part.key, content, facts)
        offsets = (part.first_offset, part.last_offset)
        return StagedObject(upload, self._batch, partition, *offsets, part.records, part.is_value, size=size)

    def close(self) -> Mapping[str, Staged]:
        left: dict[Partition, Left] = {}
        for partition, objects in self._objects.items():
            tail = objects.left() if self._may_leave else None
            if tail is None:
                self._append(partition, objects.close())
            else:
                left[partition] = tail
        for content in self._open.values():
            content.close()
        staged = [one.result() for one in self._uploads]
        self._pool.shutdown()
        return {self._target.name: Staged(staged, self._rows, left=left)}

    def discard(self) -> None:
        """The task has failed: what is staged is removed, as far as that is possible now."""
        for content in self._open.values():
            content.close()
        self._pool.shutdown(cancel_futures=True)
        store = process_store(self._plan.store)
        for one in self._uploads:
            if one.cancelled() or one.exception() is not None:
                continue
            with contextlib.suppress(IcestreamError):
                store.abort(one.result().key, one.result().upload.id)
