"""The folder of a Delta table: files are created and deleted by their paths below it. Used by whoever stages
data files or changes, and by the compaction."""

from __future__ import annotations

import posixpath
from typing import Any

import pyarrow.fs as pf

from icestream.connectors.delta.storage import Storage, file_path


class TableFolder:
    def __init__(self, location: str, storage: Storage) -> None:
        self._root = file_path(location)
        self._files = storage.file_system(location)

    def create(self, path: str) -> Any:
        """An open stream, with the folders that it needs."""
        whole = posixpath.join(self._root, path)
        if isinstance(self._files, pf.LocalFileSystem):
            self._files.create_dir(posixpath.dirname(whole), recursive=True)
        return self._files.open_output_stream(whole)

    def delete(self, path: str) -> None:
        self._files.delete_file(posixpath.join(self._root, path))
