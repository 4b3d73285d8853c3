"""A sink that writes JSON files into a folder, exactly once. docs/write-a-connector.md explains it.

Tasks write files of JSON lines into the folder. A commit adds an entry to the job's log in `_log/JOB/`: the
names of its files and the checkpoint. Only files that the log names count, and an entry's number can be taken
once: that is the compare-and-set.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icestream.api import sink
from icestream.api.batch import Staged
from icestream.api.checkpoint import FoundCheckpoint, from_json, to_json
from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type
from icestream.api.connector import JavaClass
from icestream.api.errors import CommitConflict
from icestream.records.origins import RowOrigins
from icestream.records.plain import plain
from icestream.records.records import Records


class JsonFolderPlugin(sink.SinkPlugin):
    classes = (JavaClass("com.example.JsonFolderSinkConnector", "com.example.JsonFolderSinkTask", "1.0"),)
    settings = ConfigDef((Setting("folder", Type.STRING, REQUIRED, "Where the files go."),))

    def options(self, config: Config) -> sink.SinkOptions:
        return sink.SinkOptions(commit_seconds=1.0)

    def open(self, name: str, config: Config) -> sink.Sink:
        return JsonFolderSink(name, Path(config["folder"]))


class JsonFolderSink(sink.Sink):
    writer: sink.OpenWriter

    def __init__(self, job: str, folder: Path) -> None:
        self.writer, self._folder = JsonWriter, JsonFolder(job, folder)

    def targets(self) -> Sequence[sink.Target]:
        return [self._folder]


class JsonWriter:
    """Runs in a task: one file for all records of the task."""

    def __init__(self, task: sink.WriterTask) -> None:
        (self._target,) = task.targets
        self._stages = task.stages
        self._rows: list[Any] = []
        self._file = Path(self._target.plan) / f"{task.batch}-{uuid.uuid4()}.json"

    def write(self, records: Sequence[Records], origins: RowOrigins) -> sink.Written:
        fresh = origins.at_or_after(self._target.start)
        skipped: list[int] = []
        for group in records:
            values = [None] * len(group) if group.value is None else plain(group.value, len(group))
            for row, value in zip(group.rows.tolist(), values, strict=True):
                if value is None:
                    skipped.append(row)
                elif fresh[row] and self._stages:
                    self._rows.append(value)
        return sink.Written(skipped=skipped)

    def close(self) -> dict[str, Staged]:
        if not self._rows:
            return {self._target.name: Staged()}
        self._file.write_text("".join(json.dumps(row, default=str) + "\n" for row in self._rows))
        return {self._target.name: Staged([self._file.name], len(self._rows))}

    def discard(self) -> None:
        self._file.unlink(missing_ok=True)


class JsonFolder(sink.Target):
    def __init__(self, job: str, folder: Path) -> None:
        self.name = str(folder)
        self._folder, self._log = folder, folder / "_log" / job

    def entries(self) -> list[Any]:
        return [json.loads(file.read_text()) for file in sorted(self._log.glob("*.json"))]

    def found(self) -> FoundCheckpoint:
        entries = self.entries()
        checkpoint = from_json(entries[-1]["checkpoint"]) if entries else None
        return FoundCheckpoint(checkpoint, target=self.name, target_id=self.name)

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> str:
        self._log.mkdir(parents=True, exist_ok=True)
        return self.name

    def commit(self, commit: sink.Commit) -> sink.Receipt:
        before = self.entries()
        if (before[-1]["checkpoint"] if before else None) != (commit.expect and to_json(commit.expect)):
            raise CommitConflict(f"{self.name} has another checkpoint: somebody else committed")
        staged, draft = commit.staged, self._log / f"{uuid.uuid4()}.draft"
        entry = {"files": list(staged.payload), "rows": staged.rows, "checkpoint": to_json(commit.checkpoint)}
        draft.write_text(json.dumps(entry))
        try:
            os.link(draft, self._log / f"{len(before):09}.json")
        except FileExistsError:
            raise CommitConflict(f"{self.name}: somebody else committed first") from None
        finally:
            draft.unlink()
        return sink.Receipt(commit.checkpoint, commit.checkpoint.commit)

    def discard(self, staged: Staged) -> None:
        for name in staged.payload:
            (self._folder / name).unlink(missing_ok=True)

    def audit(self) -> sink.TargetAudit:
        return sink.TargetAudit(self.found(), sum(entry["rows"] for entry in self.entries()))
