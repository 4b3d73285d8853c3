"""Where a benchmark keeps its broker, its tables and its logs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.worker import RunFailed
from icestream.embedded.home import home, require_space


@contextmanager
def working_folder(what: str, megabytes: int) -> Iterator[Path]:
    """A new folder with so much space; removed at the end, unless a run failed and its logs are needed."""
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{what}-", dir=home()))
    require_space(folder, megabytes)
    try:
        yield folder
    except RunFailed as error:
        raise RunFailed(f"{error}; logs are left in {folder}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
