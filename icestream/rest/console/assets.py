"""The files of the console, from the package's folder `console`, read and packed once, when first asked for.

Their addresses hold a hash of all of them, so browsers may keep them for ever. `index.html` is a template:
`{{assets}}` stands for the folder of the files, and `{{preload}}` for a line per module that the page needs
at once, found by following the imports from `app.js`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import posixpath
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

TYPES: Final[Mapping[str, str]] = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""What is served; other files of the package are for people."""
_PACKAGE: Final = "icestream"
_FOLDER: Final = "console"
_INDEX: Final = "index.html"
_FIRST: Final = "app.js"
_IMPORT: Final = re.compile(
    r"""^[ \t]*(?:import|export)\b[^;'"()]*?(?:\bfrom[ \t]*)?(["'])(\.{1,2}/[^"'\n]+)\1""", re.MULTILINE
)


@dataclass(frozen=True)
class Asset:
    type: str
    plain: bytes
    packed: bytes


class Assets:
    """`files` are the console's, by path; tests bring their own."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._given = files
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """The hash of all files."""
        return self._all[0]

    @property
    def index(self) -> bytes:
        return self._all[1]

    def find(self, version: str, path: str) -> Asset | None:
        """A file of this version; the names of an older one are gone, and the page says so."""
        return self._all[2].get(path) if version == self.version else None

    @property
    def paths(self) -> list[str]:
        return list(self._all[2])

    @property
    def _all(self) -> tuple[str, bytes, Mapping[str, Asset]]:
        with self._lock:
            return self._read

    @functools.cached_property
    def _read(self) -> tuple[str, bytes, Mapping[str, Asset]]:
        files = dict(self._given) if self._given is not None else dict(_packaged())
        digest = hashlib.sha256()
        for path in sorted(files):
            digest.update(f"{path}\0{len(files[path])}\0".encode() + files[path])
        version = digest.hexdigest()[:16]
        index = files.get(_INDEX, b"").decode()
        preload = "\n".join(
            f'<link rel="modulepreload" href="a/{version}/{path}">' for path in modules_of(files)
        )
        index = index.replace("{{preload}}", preload).replace("{{assets}}", f"a/{version}")
        served = {
            path: Asset(TYPES[suffix], content, gzip.compress(content, 9, mtime=0))
            for path, content in files.items()
            if (suffix := posixpath.splitext(path)[1]) in TYPES
        }
        return version, index.encode(), served


def modules_of(files: Mapping[str, bytes], first: str = _FIRST) -> list[str]:
    """Every module that the first one needs before it runs, itself too; those of `import(…)` come later."""
    found: dict[str, None] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop(0)
        if path in found or path not in files:
            continue
        found[path] = None
        waiting += imports_of(path, files[path].decode())
    return list(found)


def imports_of(path: str, text: str) -> list[str]:
    """The modules that one imports, from the console's folder."""
    folder = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(folder, match[2])) for match in _IMPORT.finditer(text)]


def _packaged() -> Iterator[tuple[str, bytes]]:
    folder = resources.files(_PACKAGE).joinpath(_FOLDER)
    yield from _below(folder, "")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            if not entry.name.startswith(("_", ".")):
                yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()
