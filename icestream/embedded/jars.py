"""Java libraries by the sets of a lock file, fetched once for a machine.

The embedded broker, `icestream sql`, the image's build, tests and benchmark take their jars from here. They
lie as in a Maven repository under `jars` in the home folder; a set is a folder of links to them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from icestream.embedded.home import home, require_space
from icestream.java_artifacts import LOCK, Artifact, ArtifactSet, read_lock

_SPARE_MB = 100


def fetch(name: str, lock: Path = LOCK) -> Path:
    """A folder with all files of a set."""
    wanted = read_lock(lock)[name]
    _bring([wanted])
    files = "\n".join(str(artifact.coordinate) for artifact in wanted.artifacts)
    digest = hashlib.sha256(files.encode()).hexdigest()[:8]
    folder = _store() / "sets" / f"{name}-{digest}"
    if not folder.is_dir():
        _link(folder, wanted)
    return folder


def fetch_files(names: Sequence[str], lock: Path = LOCK) -> list[Path]:
    """The files of several sets, all of them fetched at once."""
    sets = [read_lock(lock)[name] for name in names]
    _bring(sets)
    return [_place(artifact) for artifact in _artifacts(sets)]


def set_of(coordinate: str, lock: Path = LOCK) -> str | None:
    """The set that has this coordinate alone, if there is one."""
    for one in read_lock(lock).values():
        if [str(root) for root in one.roots] == [coordinate]:
            return one.name
    return None


def forget(name: str, lock: Path = LOCK) -> None:
    """Delete the files of a set that were unpacked and are of no use any more."""
    for artifact in read_lock(lock)[name].artifacts:
        _place(artifact).unlink(missing_ok=True)


def _store() -> Path:
    return home() / "jars"


def _place(artifact: Artifact) -> Path:
    return _store() / artifact.coordinate.path


def _artifacts(sets: Sequence[ArtifactSet]) -> list[Artifact]:
    return list(dict.fromkeys(artifact for one in sets for artifact in one.artifacts))


def _missing(sets: Sequence[ArtifactSet]) -> list[Artifact]:
    return [artifact for artifact in _artifacts(sets) if not _is_here(artifact)]


def _is_here(artifact: Artifact) -> bool:
    """A file has its name only after its hash was verified; one that was cut off later is fetched again."""
    try:
        return _place(artifact).stat().st_size == artifact.size
    except FileNotFoundError:
        return False


def _bring(sets: Sequence[ArtifactSet]) -> None:
    if not _missing(sets):
        return
    store = _store()
    store.mkdir(exist_ok=True)
    with _locked(store / ".lock"):
        # Another process may have fetched them meanwhile.
        if missing := _missing(sets):
            _download(missing, ", ".join(one.name for one in sets))


def _download(missing: Sequence[Artifact], names: str) -> None:
    # Imported late: most starts find everything here.
    from icestream.embedded.downloads import Download, download
    from icestream.embedded.maven import repository

    require_space(_store(), _SPARE_MB + sum(artifact.size for artifact in missing) // 1_000_000)
    source = repository(os.environ)
    files = [Download(one.coordinate.path, _place(one), one.size, one.sha256) for one in missing]
    origin = f" from {source.url}" if source.is_mirror else ""
    download(files, source, f"{names}{origin}")


def _link(folder: Path, wanted: ArtifactSet) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as scratch:
        made = Path(scratch) / "set"
        made.mkdir()
        for artifact in wanted.artifacts:
            coordinate = artifact.coordinate
            # Relative: the home folder may be moved, or be seen by another path.
            (made / coordinate.file_name).symlink_to(Path("..", "..", coordinate.path))
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster.
            if not folder.is_dir():
                raise
            shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that fetches Java libraries", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
