"""The folder where downloads and the embedded broker's data live. Everything under `embedded` asks here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError

_NEEDED_MB: Final = 500


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """`$ICESTREAM_HOME` or `~/.cache/icestream`, created if it is missing."""
    chosen = environ.get("ICESTREAM_HOME")
    folder = (Path(chosen) if chosen else Path.home() / ".cache" / "icestream").expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PreconditionError(
            f"the folder {folder} cannot be created ({error.strerror});"
            " set ICESTREAM_HOME to one that can be written"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PreconditionError(f"the folder {folder} cannot be written; set ICESTREAM_HOME to one that can")
    require_space(folder)
    return folder


def require_space(folder: Path, needed_mb: int = _NEEDED_MB) -> None:
    """Raise unless the disk of `folder` has room."""
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < needed_mb:
        raise PreconditionError(
            f"the disk of {folder} has {free_mb} MB free and {needed_mb} MB are needed;"
            " free some space or set ICESTREAM_HOME to another disk"
        )
