"""Whether connectors may read and write files of this worker, and which. Asked before a connector is judged.

Kafka's file connectors are off, as in Kafka Connect since 3.1.1: there `plugin.path` has to name their jar,
as its quickstart says, and that switches them on here, too.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.api.errors import NotFoundError, Problem
from icestream.plugins import find_connector

FILE_CONNECTORS: Final = (
    Setting(
        "icestream.file.connectors.enabled",
        Type.BOOLEAN,
        False,
        "Whether FileStreamSource and FileStreamSink may be used. A plugin.path with Kafka's connect-file "
        "jar says so, too.",
    ),
    Setting(
        "icestream.file.connectors.folders",
        Type.LIST,
        [],
        "The folders whose files they may read and write; all if it is not set.",
    ),
)
_ENABLED, _FOLDERS = FILE_CONNECTORS
_PACKAGE: Final = "org.apache.kafka.connect.file."
_JAR: Final = re.compile(r"(?:.*/)?connect-file(?:-[\w.\-]+)?\.jar")


def names_the_jar(worker: Config) -> bool:
    return any(_JAR.fullmatch(part.strip()) for part in worker.get("plugin.path", "").split(","))


def file_problems(config: Config, worker: Config) -> list[Problem]:
    """Why a file connector may not run here, or not with its file; nothing about other connectors."""
    try:
        plugin = find_connector(config.get("connector.class", ""))
    except NotFoundError:
        return []
    if not plugin.class_name.startswith(_PACKAGE):
        return []
    if not (_ENABLED.parse(worker.get(_ENABLED.name, "false")) or names_the_jar(worker)):
        return [
            Problem(
                "connector.class",
                f"'{plugin.simple_name}' is switched off: it reads or writes files of the worker; set "
                f"{_ENABLED.name}=true in the worker's config, or plugin.path to Kafka's connect-file jar",
            )
        ]
    path = config.get("file", "").strip()
    if not path:
        return []
    return [Problem("file", reason) for reason in _reasons(path, worker, is_read=plugin.is_source)]


def _reasons(path: str, worker: Config, *, is_read: bool) -> list[str]:
    real = Path(os.path.realpath(path))
    folders = [Path(os.path.realpath(one)) for one in _FOLDERS.parse(worker.get(_FOLDERS.name, ""))]
    if folders and not any(real.is_relative_to(folder) for folder in folders):
        return [f"'file={path}' is in none of the folders of {_FOLDERS.name}; choose a file in one of them"]
    try:
        mode = real.stat().st_mode
    except (OSError, ValueError):
        return []  # it may come later
    if is_read and not stat.S_ISREG(mode):
        return [f"'file={path}' is not a regular file; name one, or remove 'file' to read standard input"]
    if stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        return [f"'file={path}' is a device or a folder; name a file"]
    return []
