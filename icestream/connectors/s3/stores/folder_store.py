"""A folder as a store of objects: a key is the path of a file below it. Opened by `opening`.

Parts of an upload are one file in a hidden folder beside the objects; completing it is a hard link, which the
file system refuses if the name is taken. The hidden folder also has the metadata of the objects. Names that
begin with a dot or an underscore are passed over by those who read folders of data.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from icestream.api.errors import SinkUnavailable
from icestream.connectors.s3.names import HIDDEN
from icestream.connectors.s3.stores.store import (
    Exists,
    NoSuchUpload,
    ObjectFacts,
    OpenUpload,
    Upload,
)

_UPLOADS: Final = "uploads"
_FACTS: Final = "facts"
_BLOCK: Final = 2**20


@contextlib.contextmanager
def _told(doing: str, path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkUnavailable(f"cannot {doing} '{path}': {error.strerror}; free space or allow it") from error


class FolderStore:
    """Several jobs and processes may use a folder at the same time; they share one file system."""

    def __init__(self, folder: Path, is_durable: bool = True) -> None:
        self.name = f"file://{folder}"
        self._folder = folder
        self._hidden = folder / HIDDEN
        self._is_durable = is_durable

    def upload(self, key: str, content: IO[bytes], metadata: Mapping[str, str]) -> Upload:
        upload = uuid.uuid4().hex
        path = self.staged(upload)
        self.path(key)
        with _told("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            facts = {"key": key, "upload": upload, "metadata": dict(metadata)}
            self._write_facts(upload, facts)
            with path.open("xb") as file:
                shutil.copyfileobj(content, file, _BLOCK)
                file.flush()
                self._settle_file(file.fileno())
                found = os.fstat(file.fileno())
            self._write_facts(upload, {**facts, "inode": found.st_ino, "size": found.st_size})
        return Upload(key, upload, (str(found.st_size),))

    def complete(self, upload: Upload, replaces: str | None = None) -> None:
        staged, path = self.staged(upload.id), self.path(upload.key)
        with _told("write", path):
            if not staged.exists():
                raise NoSuchUpload(upload.key)
            path.parent.mkdir(parents=True, exist_ok=True)
            if replaces is not None:
                self._exchange(upload, staged, path, replaces)
                return
            # First what is known of the object, which is never there without it.
            described = self._described(upload.key)
            with contextlib.suppress(FileExistsError):
                described.parent.mkdir(parents=True, exist_ok=True)
                os.link(self.staged_facts(upload.id), described)
            try:
                os.link(staged, path)
            except FileExistsError:
                if not path.samefile(staged):
                    raise Exists(upload.key) from None
            if self._tag_of(described) != upload.id:
                # It was there first: of an upload that was removed, or that died here.
                self._take_place(self.staged_facts(upload.id), described)
            self._settle(path.parent)
        self.abort(upload.key, upload.id)

    def _exchange(self, upload: Upload, staged: Path, path: Path, replaces: str) -> None:
        """Not one step: two who replace the same object at the same time are not told apart."""
        if not (path.exists() and path.samefile(staged)):
            now = self.facts(upload.key)
            if now is None or now.tag != replaces:
                raise Exists(upload.key)
            self._take_place(staged, path)
        self._take_place(self.staged_facts(upload.id), self._described(upload.key))
        self._settle(path.parent)
        self.abort(upload.key, upload.id)

    def _take_place(self, source: Path, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{uuid.uuid4().hex}")
        os.link(source, aside)
        aside.replace(place)

    def abort(self, upload_key: str, upload_id: str) -> None:
        with _told("remove an upload of", self.name):
            self.staged(upload_id).unlink(missing_ok=True)
            self.staged_facts(upload_id).unlink(missing_ok=True)

    def is_open(self, upload: Upload) -> bool:
        return self.staged(upload.id).exists()

    def open_uploads(self, prefix: str) -> Iterator[OpenUpload]:
        for file in sorted(self._hidden.glob(f"{_UPLOADS}/*.json")):
            try:
                key = json.loads(file.read_bytes())["key"]
                begun = dt.datetime.fromtimestamp(file.stat().st_mtime, dt.UTC)
            except (OSError, ValueError, KeyError, TypeError):
                # It ends at this moment, or its machine lost power.
                continue
            if key.startswith(prefix):
                yield OpenUpload(key, file.stem, begun)

    def put(self, key: str, content: bytes) -> None:
        draft, path = self._draft(content), self.path(key)
        with _told("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(draft, path)
            except FileExistsError:
                raise Exists(key) from None
            finally:
                draft.unlink()
            self._settle(path.parent)

    def replace(self, key: str, content: bytes) -> None:
        draft, path = self._draft(content), self.path(key)
        with _told("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(path)
            self._settle(path.parent)

    def get(self, key: str) -> bytes | None:
        with _told("read", self.path(key)):
            try:
                return self.path(key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read(self, key: str) -> bytes | None:
        return self.get(key)

    def facts(self, key: str) -> ObjectFacts | None:
        path = self.path(key)
        with _told("read", path):
            try:
                found = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                stored = json.loads(self._described(key).read_bytes())
            except (FileNotFoundError, ValueError):
                stored = {}
        # Somebody may have put another file in its place.
        is_ours = stored.get("inode") == found.st_ino and stored.get("size") == found.st_size
        tag = stored["upload"] if is_ours else f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
        changed = dt.datetime.fromtimestamp(found.st_mtime, dt.UTC)
        return ObjectFacts(key, found.st_size, tag, changed, stored["metadata"] if is_ours else {})

    def list(self, prefix: str, after: str = "") -> Iterator[ObjectFacts]:
        folder, _, _ = prefix.rpartition("/")
        keys = []
        for path, folders, files in os.walk(self._folder / folder):
            folders[:] = [one for one in folders if one != HIDDEN]
            keys += [Path(path, file).relative_to(self._folder).as_posix() for file in files]
        for key in sorted(keys):
            name = key.rpartition("/")[2]
            if key.startswith(prefix) and key > after and not name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    found = self.path(key).stat()
                    changed = dt.datetime.fromtimestamp(found.st_mtime, dt.UTC)
                    yield ObjectFacts(key, found.st_size, "", changed)

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            with _told("remove", self.path(key)):
                self.path(key).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is open."""

    # -- for uploads --

    def path(self, key: str) -> Path:
        """Never out of the folder: `names` refuses such keys, and this one trusts nobody."""
        path = self._folder / key.lstrip("/")
        if ".." in path.parts or HIDDEN in Path(key).parts:
            raise SinkUnavailable(f"'{key}' is no name of an object in {self.name}")
        return path

    def staged(self, upload: str) -> Path:
        return self._hidden / _UPLOADS / f"{upload}.part"

    def staged_facts(self, upload: str) -> Path:
        return self._hidden / _UPLOADS / f"{upload}.json"

    def _described(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._hidden / _FACTS / name[:2] / f"{name}.json"

    def _tag_of(self, described: Path) -> str:
        try:
            found = json.loads(described.read_bytes())["upload"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return str(found)

    def _write_facts(self, upload: str, facts: Mapping[str, object]) -> None:
        path = self.staged_facts(upload)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(facts))
        draft.replace(path)

    def _draft(self, content: bytes) -> Path:
        draft = self._hidden / f"{uuid.uuid4().hex}.draft"
        with _told("write", draft):
            draft.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("xb") as file:
                file.write(content)
                self._settle_file(file.fileno())
        return draft

    def _settle_file(self, file: int) -> None:
        if self._is_durable:
            os.fsync(file)

    def _settle(self, folder: Path) -> None:
        """The new name survives a loss of power: what follows relies on it."""
        if not self._is_durable:
            return
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
