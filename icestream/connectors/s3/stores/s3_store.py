"""S3, and what speaks its protocol, as a store of objects. Opened by `opening`.

Uploads are multipart uploads that nobody has completed. What is conditional relies on `If-None-Match` and
`If-Match`, which AWS has since 2024; `probes` asks other stores whether they have them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from icestream.api.errors import ConfigError, Problem, SinkRefused, SinkUnavailable
from icestream.connectors.s3.commits.metadata import FIRST, LAST, RECORDS
from icestream.connectors.s3.stores.store import (
    AnswerLost,
    Exists,
    NoSuchUpload,
    ObjectFacts,
    OpenUpload,
    Upload,
)
from icestream.waits import waiting_for

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_log = logging.getLogger(__name__)

_TAGS: Final = {"startOffset": FIRST, "endOffset": LAST, "recordCount": RECORDS}
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})
_REFUSED: Final = frozenset({"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_MOST_REMOVED: Final = 1000
_CHANGED_MEANWHILE: Final = 409


@dataclass(frozen=True)
class NewObjects:
    """What every object that is written gets, in the words of S3's API."""

    # Not in the repr: a key that encrypts is among them.
    uploads: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of `CreateMultipartUpload`."""
    parts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of each part of an upload, of its completion, and of whoever reads the object."""
    part_bytes: int = 26_214_400
    tags: Mapping[str, str] | None = None
    """Besides those that tell offsets and records; None: objects get no tags at all."""
    needs_tags: bool = False
    """Whether an object that cannot be tagged cannot be written either."""
    with_digest: bool = False
    """Whether parts are sent with an MD5."""
    on_condition: bool = True
    """False: the store does not know conditions."""


class S3Store:
    """One bucket. The client may be used by several threads."""

    def __init__(self, client: Any, bucket: str, objects: NewObjects | None = None) -> None:
        self.name = f"s3://{bucket}"
        self._client = client
        self._bucket = bucket
        self._objects = objects or NewObjects()

    def upload(self, key: str, content: IO[bytes], metadata: Mapping[str, str]) -> Upload:
        begun = self._begin(key, metadata)
        try:
            return Upload(key, begun, tuple(self._parts(key, begun, content)))
        except BaseException:
            # Swept later if this fails, too.
            with contextlib.suppress(SinkUnavailable, ConfigError):
                self.abort(key, begun)
            raise

    def _begin(self, key: str, metadata: Mapping[str, str]) -> str:
        more: dict[str, Any] = {"Metadata": dict(metadata), **self._objects.uploads}
        if self._objects.tags is not None:
            own = {tag: metadata[name] for tag, name in _TAGS.items() if name in metadata}
            tags = urlencode({**own, **self._objects.tags})
            try:
                return str(self._call("create_multipart_upload", key, Tagging=tags, **more)["UploadId"])
            except AnswerLost:
                raise
            except SinkUnavailable as error:
                if self._objects.needs_tags:
                    raise
                _log.warning("'%s' gets no tags: %s", key, error)
        return str(self._call("create_multipart_upload", key, **more)["UploadId"])

    def _parts(self, key: str, upload: str, content: IO[bytes]) -> Iterator[str]:
        number = 0
        while True:
            part = content.read(self._objects.part_bytes)
            if not part and number:
                return
            number += 1
            more = dict(self._objects.parts)
            if self._objects.with_digest:
                digest = hashlib.md5(part, usedforsecurity=False).digest()
                more["ContentMD5"] = base64.b64encode(digest).decode()
            answer = self._call("upload_part", key, UploadId=upload, PartNumber=number, Body=part, **more)
            yield answer["ETag"]
            if len(part) < self._objects.part_bytes:
                return

    def complete(self, upload: Upload, replaces: str | None = None) -> None:
        parts = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(upload.parts, 1)]
        condition = {"IfNoneMatch": "*"} if replaces is None else {"IfMatch": replaces}
        if not self._objects.on_condition:
            condition = {}
        try:
            self._call(
                "complete_multipart_upload",
                upload.key,
                UploadId=upload.id,
                MultipartUpload={"Parts": parts},
                **condition,
                **self._objects.parts,
            )
        except _Absent as error:
            # So S3 says that there is nothing with the tag that was asked for.
            raise Exists(upload.key) from error

    def abort(self, upload_key: str, upload_id: str) -> None:
        with contextlib.suppress(NoSuchUpload):
            self._call("abort_multipart_upload", upload_key, UploadId=upload_id)

    def is_open(self, upload: Upload) -> bool:
        try:
            self._call("list_parts", upload.key, UploadId=upload.id, MaxParts=1)
        except NoSuchUpload:
            return False
        return True

    def open_uploads(self, prefix: str) -> Iterator[OpenUpload]:
        for page in self._pages("list_multipart_uploads", "uploads", Prefix=prefix):
            for found in page.get("Uploads", ()):
                yield OpenUpload(found["Key"], found["UploadId"], found["Initiated"])

    def put(self, key: str, content: bytes) -> None:
        if self._objects.on_condition:
            self._call("put_object", key, Body=content, IfNoneMatch="*", **self._of_ledger())
            return
        if self.get(key) is not None:
            raise Exists(key)
        self.replace(key, content)

    def replace(self, key: str, content: bytes) -> None:
        self._call("put_object", key, Body=content, **self._of_ledger())

    def _of_ledger(self) -> dict[str, str]:
        # Encrypted as the objects are, but never by the customer's key: it is read without one.
        kept = ("ServerSideEncryption", "SSEKMSKeyId", "ACL")
        return {name: value for name, value in self._objects.uploads.items() if name in kept}

    def get(self, key: str) -> bytes | None:
        return self._content(key)

    def read(self, key: str) -> bytes | None:
        return self._content(key, **self._objects.parts)

    def _content(self, key: str, **more: str) -> bytes | None:
        try:
            with self._told(f"read '{key}' of"):
                found: bytes = self._client.get_object(Bucket=self._bucket, Key=key, **more)["Body"].read()
        except _Absent:
            return None
        return found

    def facts(self, key: str) -> ObjectFacts | None:
        try:
            found = self._call("head_object", key, **self._objects.parts)
        except _Absent:
            return None
        return ObjectFacts(
            key, found["ContentLength"], found["ETag"], found["LastModified"], found.get("Metadata", {})
        )

    def list(self, prefix: str, after: str = "") -> Iterator[ObjectFacts]:
        start = {"StartAfter": after} if after else {}
        for page in self._pages("list_objects_v2", "objects", Prefix=prefix, **start):
            for found in page.get("Contents", ()):
                yield ObjectFacts(found["Key"], found["Size"], found["ETag"], found["LastModified"])

    def remove(self, keys: Sequence[str]) -> None:
        for first in range(0, len(keys), _MOST_REMOVED):
            some = [{"Key": key} for key in keys[first : first + _MOST_REMOVED]]
            with self._told("remove old entries of the ledger"):
                self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": some, "Quiet": True})

    def close(self) -> None:
        self._client.close()

    def _pages(self, operation: str, what: str, **more: Any) -> Iterator[Mapping[str, Any]]:
        pages = iter(self._client.get_paginator(operation).paginate(Bucket=self._bucket, **more))
        while True:
            with self._told(f"list {what} of"):
                page = next(pages, None)
            if page is None:
                return
            yield page

    def _call(self, operation: str, key: str, **more: Any) -> Mapping[str, Any]:
        with self._told(f"{operation.replace('_', ' ')} '{key}' in"):
            answer: Mapping[str, Any] = getattr(self._client, operation)(Bucket=self._bucket, Key=key, **more)
        return answer

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        """What S3 says no to, in our words."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        try:
            with waiting_for(f"S3: {self.name}"):
                yield
        except ClientError as error:
            raise self._refusal(doing, error) from error
        except HTTPClientError as error:
            raise AnswerLost(f"cannot {doing} {self.name}: {error}") from error
        except BotoCoreError as error:
            raise SinkUnavailable(f"cannot {doing} {self.name}: {error}") from error

    def _refusal(self, doing: str, error: ClientError) -> Exception:
        answer = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(answer.get("Code", status))
        if code == "PreconditionFailed":
            return Exists(doing)
        if code == "NoSuchUpload":
            return NoSuchUpload(doing)
        if code == "NoSuchBucket":
            return ConfigError([Problem("s3.bucket.name", f"{self.name} does not exist; create the bucket")])
        if code in _ABSENT:
            return _Absent(f"cannot {doing} {self.name}: it says that there is no such thing ({code})")
        # Its words may be those of any host that the worker reaches and its users do not.
        _log.info("cannot %s %s: %s", doing, self.name, error)
        shown = code if re.fullmatch(r"\w{1,64}", code, re.ASCII) else "an unknown code"
        reason = f"cannot {doing} {self.name}: {shown}, HTTP {status}"
        if code in _REFUSED:
            return SinkRefused(f"{reason}; correct the login, or give it the right")
        if status >= 500 or status == _CHANGED_MEANWHILE:
            # A proxy may have lost an answer, and a repeated request meets what the first has done.
            return AnswerLost(reason)
        return SinkUnavailable(reason)


class _Absent(SinkUnavailable):
    """There is no such object."""
