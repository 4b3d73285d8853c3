"""What a table's log still has, read from its files, where delta-rs does not tell: all transactions, for a
job whose marks are gone, and when its last checkpoint was made. Used by `table`."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any, Final

import pyarrow.fs as pf
import pyarrow.parquet as pq

LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(\.[0-9a-fA-F.-]+)?\.(parquet|json)")


def transactions(files: pf.FileSystem, root: str, version: int) -> dict[str, int]:
    """All transactions of the table at a version, by their ids; empty if its log does not reach back."""
    folder = posixpath.join(root, LOG)
    names = [one.base_name for one in files.get_file_info(pf.FileSelector(folder, allow_not_found=True))]
    checkpoints = {
        name: int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name)) is not None
    }
    newest = max((at for at in checkpoints.values() if at <= version), default=None)
    found: dict[str, int] = {}
    for name, at in checkpoints.items():
        if at == newest:
            found |= _in_checkpoint(files, posixpath.join(folder, name))
    commits = sorted(
        (int(match[1]), name) for name in names if (match := _COMMIT.fullmatch(name)) is not None
    )
    for at, name in commits:
        if (newest if newest is not None else -1) < at <= version:
            found |= _in_lines(files, posixpath.join(folder, name))
    return found


def last_checkpoint(files: pf.FileSystem, root: str) -> int:
    """The version of the log's last checkpoint; 0 if it has none."""
    path = posixpath.join(root, LOG, "_last_checkpoint")
    if files.get_file_info(path).type is pf.FileType.NotFound:
        return 0
    with files.open_input_stream(path) as stream:
        return int(json.loads(stream.read())["version"])


def _in_checkpoint(files: pf.FileSystem, path: str) -> dict[str, int]:
    if path.endswith(".json"):
        return _in_lines(files, path)
    with files.open_input_file(path) as stream:
        table = pq.ParquetFile(stream).read(columns=["txn"])
    rows = table.column("txn").to_pylist() if "txn" in table.column_names else []
    return {row["appId"]: row["version"] for row in rows if row is not None and row["appId"] is not None}


def _in_lines(files: pf.FileSystem, path: str) -> dict[str, int]:
    with files.open_input_stream(path) as stream:
        text = stream.read()
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {one["txn"]["appId"]: int(one["txn"]["version"]) for one in actions if "txn" in one}
