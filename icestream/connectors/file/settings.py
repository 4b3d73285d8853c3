"""The settings of FileStreamSink and FileStreamSource, and those of the worker about them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type


def _not_empty(value: str) -> str | None:
    return None if value else "String must be non-empty"


FILE_STREAM_SINK: Final = ConfigDef(
    (
        Setting(
            "file", Type.STRING, None, "The file to append to; otherwise standard output.", importance="HIGH"
        ),
    )
)

FILE_STREAM_SOURCE: Final = ConfigDef(
    (
        Setting("file", Type.STRING, None, "The file to read; otherwise standard input.", importance="HIGH"),
        Setting(
            "topic",
            Type.STRING,
            REQUIRED,
            "The topic that gets the lines.",
            check=_not_empty,
            importance="HIGH",
        ),
        Setting("batch.size", Type.INT, 2000, "How many lines are read at a time.", importance="LOW"),
    )
)

ENABLED: Final = Setting(
    "icestream.file.connectors.enabled",
    Type.BOOLEAN,
    False,
    "Whether FileStreamSource and FileStreamSink may be used. A plugin.path with Kafka's connect-file "
    "jar says so, too.",
)
FOLDERS: Final = Setting(
    "icestream.file.connectors.folders",
    Type.LIST,
    [],
    "The folders whose files they may read and write; all if it is not set.",
)


JOURNAL_NAME: Final = re.compile(r"\..+\.icestream(\.tmp|\.lock)?", re.DOTALL)
"""What the sink keeps beside `NAME` is in `.NAME.icestream`."""


def file_problem(path: str, worker: Config, *, is_read: bool) -> str | None:
    """Why a file of the worker may not be read or written; None if it may, or is not there yet."""
    if "\0" in path:
        return None  # no path at all, which is said of every config
    real = Path(os.path.realpath(path))
    folders = [Path(os.path.realpath(one)) for one in FOLDERS.parse(worker.get(FOLDERS.name, ""))]
    if folders and not any(real.is_relative_to(folder) for folder in folders):
        return f"'file={path}' is in none of the folders of {FOLDERS.name}; choose a file in one of them"
    if not is_read and JOURNAL_NAME.fullmatch(real.name):
        return f"'file={path}' is the name of a journal of FileStreamSink; choose another"
    try:
        mode = real.stat().st_mode
    except (OSError, ValueError):
        return None
    if is_read and not stat.S_ISREG(mode):
        return f"'file={path}' is not a regular file; name one, or remove 'file' to read standard input"
    if stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        return f"'file={path}' is a device or a folder; name a file"
    return None
