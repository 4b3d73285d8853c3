"""A bucket of Google or a container of Azure as a store of objects, by object_store (in Rust). Opened by
`cloud_opening`.

Neither has an upload that waits unseen under its final key, so an object is staged under a key of its own,
in the hidden folder of the ledger. Completing it is a copy inside of the store, on condition that the key is
free, and the removal of what was staged. The object knows which upload it was: who completes it again sees
that it is done.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Final
from urllib.parse import quote, unquote

from icestream.api.errors import ConfigError, FatalError, Problem, SinkRefused, SinkUnavailable
from icestream.connectors.s3.clouds import BUCKET
from icestream.connectors.s3.stores.store import (
    AnswerLost,
    Exists,
    NoSuchUpload,
    ObjectFacts,
    OpenUpload,
    Upload,
)
from icestream.waits import waiting_for

_UPLOAD: Final = "icestream-upload"
_SIZE: Final = "icestream-size"
_KEY: Final = "icestream-key"
_OURS: Final = (_UPLOAD, _SIZE, _KEY)
"""Metadata of this store's own."""
_PREFIX: Final = "icestream-"
_COPY_SECONDS: Final = 30
"""How long a copy inside of the store is waited for; the next attempt waits again."""
_BETWEEN_LOOKS: Final = 0.5
_LONGEST_REASON: Final = 500


class CloudStore:
    """The client may be used by several threads."""

    def __init__(
        self,
        client: Any,
        name: str,
        staging: str,
        part_bytes: int = 26_214_400,
        *,
        has_plain_names: bool = False,
        secrets: Sequence[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._client = client
        self._staging = f"{staging.strip('/')}/"
        self._part_bytes = part_bytes
        self._has_plain_names = has_plain_names
        """Whether names of metadata are words of letters and underscores, as Azure has them."""
        self._secrets = tuple(one for one in secrets if one)
        self._sleep = sleep

    # -- uploads --

    def upload(self, key: str, content: IO[bytes], metadata: Mapping[str, str]) -> Upload:
        id_ = uuid.uuid4().hex
        start = content.tell()
        size = content.seek(0, 2) - start
        content.seek(start)
        own = {_UPLOAD: id_, _SIZE: str(size), _KEY: quote(key)}
        self._write(
            self._staged(id_),
            content,
            self._stored({**metadata, **own}),
            chunk_size=self._part_bytes,
            use_multipart=size > self._part_bytes,
        )
        return Upload(key, id_, (str(size),))

    def complete(self, upload: Upload, replaces: str | None = None) -> None:
        import obstore

        staged = self._staged(upload.id)
        try:
            if replaces is not None:
                self._exchange(upload, replaces)
            else:
                with self._told(f"copy '{upload.key}' in"):
                    obstore.copy(self._client, staged, upload.key, overwrite=False)
        except _Absent:
            raise NoSuchUpload(upload.key) from None
        except Exists:
            there = self._look(upload.key)
            if there is None or there.metadata.get(_UPLOAD) != upload.id:
                raise
        self._await_copy(upload)
        self.abort(upload.key, upload.id)

    def _exchange(self, upload: Upload, tag: str) -> None:
        """By way of this machine: no store copies on condition of what is replaced."""
        import obstore

        with self._told(f"read '{upload.key}' of"):
            found = obstore.get(self._client, self._staged(upload.id))
            attributes, content = dict(found.attributes), found.bytes()
        try:
            with self._told(f"replace '{upload.key}' in"):
                obstore.put(
                    self._client,
                    upload.key,
                    content,
                    attributes=attributes,
                    mode=json.loads(tag),
                    use_multipart=False,
                )
        except _Absent:
            # So Azure may say that there is nothing with the tag that was asked for.
            raise Exists(upload.key) from None

    def _await_copy(self, upload: Upload) -> None:
        """A store may answer before it has copied everything; what is staged is needed until then."""
        (size,) = upload.parts
        waited = 0.0
        while True:
            there = self._look(upload.key)
            if there is None or there.metadata.get(_UPLOAD) != upload.id:
                raise Exists(upload.key)
            if there.size == int(size):
                return
            if waited >= _COPY_SECONDS:
                break
            self._sleep(_BETWEEN_LOOKS)
            waited += _BETWEEN_LOOKS
        # The store gave up, or is slow: it refuses this while it still copies.
        with contextlib.suppress(Exists):
            self._exchange(upload, there.tag)
            return
        raise SinkUnavailable(f"{self.name}: '{upload.key}' is still being copied; the next attempt waits on")

    def abort(self, upload_key: str, upload_id: str) -> None:
        self.remove([self._staged(upload_id)])

    def is_open(self, upload: Upload) -> bool:
        return self._look(self._staged(upload.id)) is not None

    def open_uploads(self, prefix: str) -> Iterator[OpenUpload]:
        for one in self.list(self._staging):
            there = self._look(one.key)
            key = unquote(there.metadata.get(_KEY, "")) if there is not None else ""
            if key.startswith(prefix):
                yield OpenUpload(key, one.key.removeprefix(self._staging), one.changed)

    # -- objects --

    def put(self, key: str, content: bytes) -> None:
        self._write(key, content, {}, mode="create", use_multipart=False)

    def replace(self, key: str, content: bytes) -> None:
        self._write(key, content, {}, use_multipart=False)

    def get(self, key: str) -> bytes | None:
        import obstore

        try:
            with self._told(f"read '{key}' of"):
                return bytes(obstore.get(self._client, key).bytes())
        except _Absent:
            return None

    def read(self, key: str) -> bytes | None:
        return self.get(key)

    def facts(self, key: str) -> ObjectFacts | None:
        found = self._look(key)
        if found is None:
            return None
        said = found.metadata.get(_SIZE, str(found.size))
        if said != str(found.size):
            raise SinkUnavailable(f"{self.name}: '{key}' is still being copied, {found.size} of {said} bytes")
        metadata = {name: value for name, value in found.metadata.items() if name not in _OURS}
        return ObjectFacts(key, found.size, found.tag, found.changed, metadata)

    def _look(self, key: str) -> ObjectFacts | None:
        import obstore

        try:
            with self._told(f"ask for '{key}' in"):
                found = obstore.get(self._client, key, options={"head": True})
        except _Absent:
            return None
        meta = found.meta
        condition = {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}
        return ObjectFacts(
            key, meta["size"], json.dumps(condition), meta["last_modified"], self._said(found.attributes)
        )

    def list(self, prefix: str, after: str = "") -> Iterator[ObjectFacts]:
        import obstore

        # The client knows folders, and no other beginnings of names.
        folder = prefix.rpartition("/")[0]
        with self._told("list objects of"):
            pages = obstore.list(self._client, folder or None, offset=after or None)
            found = [one for page in pages for one in page if one["path"].startswith(prefix)]
        for one in sorted(found, key=lambda one: one["path"]):
            yield ObjectFacts(one["path"], one["size"], "", one["last_modified"])

    def remove(self, keys: Sequence[str]) -> None:
        import obstore

        for key in keys:
            with contextlib.suppress(_Absent), self._told(f"remove '{key}' of"):
                obstore.delete(self._client, key)

    def close(self) -> None:
        """The client closes its connections by itself."""

    # -- words of the client --

    def _staged(self, upload: str) -> str:
        return f"{self._staging}{upload}"

    def _write(self, key: str, content: Any, attributes: Mapping[str, str], **more: Any) -> None:
        import obstore

        try:
            with self._told(f"write '{key}' to"):
                obstore.put(self._client, key, content, attributes=dict(attributes), **more)
        except _Absent:
            message = f"{self.name} does not exist; create the bucket or container"
            raise ConfigError([Problem(BUCKET, message)]) from None

    def _stored(self, metadata: Mapping[str, str]) -> dict[str, str]:
        if not self._has_plain_names:
            return dict(metadata)
        return {name.replace("-", "_"): value for name, value in metadata.items()}

    def _said(self, attributes: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-").lower(): value for name, value in attributes.items()}
        return {name: value for name, value in named.items() if name.startswith(_PREFIX)}

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        """What the store says no to, in our words."""
        from obstore import exceptions

        try:
            with waiting_for(self.name):
                yield
        except FileNotFoundError:
            raise _Absent(doing) from None
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise Exists(doing) from None
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            reason = f"cannot {doing} {self.name}: {self._reason(error)}"
            raise SinkRefused(f"{reason}; correct the login, or give it the right") from None
        except ValueError:
            raise FatalError(f"cannot {doing} {self.name}: it takes no such name") from None
        except exceptions.GenericError as error:
            # It does not tell a refusal from an answer that is lost.
            raise AnswerLost(f"cannot {doing} {self.name}: {self._reason(error)}") from None
        except exceptions.BaseError as error:
            raise SinkUnavailable(f"cannot {doing} {self.name}: {self._reason(error)}") from None

    def _reason(self, error: Exception) -> str:
        """Without what is meant for those who write the client, and without secrets."""
        text = " ".join(str(error).partition("\n\nDebug source")[0].split())
        for secret in self._secrets:
            text = text.replace(secret, "[hidden]").replace(quote(secret, safe=""), "[hidden]")
        return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


class _Absent(Exception):
    """There is no such object, or no such bucket."""
