"""A file system of Arrow's over a client of S3 whose requests somebody else signs.

Made by `remote_signing.py`. It has what tables need and no more: reading, writing and removing objects, and
listing below a folder. Files are written in parts, so an open one holds one part in memory.
"""

from __future__ import annotations

import functools
import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pf

_PART_BYTES: Final = 10 * 1024 * 1024
_READ_AHEAD_BYTES: Final = 1024 * 1024
_CONNECTIONS: Final = 32
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_ATTEMPTS: Final = 5
_MAKING: Final = threading.Lock()
"""Sessions of botocore are for one thread, clients for many."""
_MISSING: Final = frozenset({"404", "NoSuchKey", "NotFound"})
_ARROWS_WORDS: Final = {
    "AccessDenied": "ACCESS_DENIED",
    "403": "ACCESS_DENIED",
    "NoSuchBucket": "NO_SUCH_BUCKET",
    "SignatureDoesNotMatch": "SIGNATURE_DOES_NOT_MATCH",
    "InvalidAccessKeyId": "INVALID_ACCESS_KEY_ID",
}
"""Those who read errors of Arrow's own client know these."""


def s3_client(properties: Mapping[str, str], region: str, sign: Any) -> Any:
    """A client of S3 that has no keys. `sign` gets every request, each attempt anew."""
    import botocore
    from botocore.config import Config

    seconds = {key: properties.get(f"s3.{key}-timeout") for key in ("connect", "request")}
    endpoint = properties.get("s3.endpoint")
    style = "path" if endpoint else "auto"
    if properties.get("s3.force-virtual-addressing", "").lower() == "true":
        style = "virtual"
    proxy = properties.get("s3.proxy-uri")
    config = Config(
        signature_version=botocore.UNSIGNED,
        connect_timeout=float(seconds["connect"] or _CONNECT_SECONDS),
        read_timeout=float(seconds["request"] or _READ_SECONDS),
        retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
        max_pool_connections=_CONNECTIONS,
        proxies={"http": proxy, "https": proxy} if proxy else None,
        # Checksums behind the body would have to be signed part by part.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": style},
    )
    with _MAKING:
        client = _session().create_client("s3", region_name=region, endpoint_url=endpoint, config=config)
    client.meta.events.register_last("before-sign.s3", sign)
    return client


@functools.cache
def _session() -> Any:
    """One for all clients: it takes its time to read what S3 is."""
    import botocore.session

    return botocore.session.Session()


class SignedStorage(pf.FileSystemHandler):  # type: ignore[misc]
    """Paths are `bucket/key`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SignedStorage) and other._client is self._client

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "s3-signed-elsewhere"

    def normalize_path(self, path: str) -> str:
        return path

    # -- looking --

    def get_file_info(self, paths: list[str]) -> list[pf.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> pf.FileInfo:
        bucket, key = _split(path)
        try:
            with _told("HeadObject" if key else "HeadBucket", path):
                if not key:
                    self._client.head_bucket(Bucket=bucket)
                    return pf.FileInfo(path, pf.FileType.Directory)
                found = self._client.head_object(Bucket=bucket, Key=key)
        except FileNotFoundError:
            return pf.FileInfo(path, pf.FileType.NotFound)
        return _file(path, found["ContentLength"], found["LastModified"])

    def get_file_info_selector(self, selector: pf.FileSelector) -> list[pf.FileInfo]:
        bucket, folder = _split(selector.base_dir)
        prefix = f"{folder.rstrip('/')}/" if folder else ""
        found: list[pf.FileInfo] = []
        with _told("ListObjectsV2", selector.base_dir):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=prefix, **({} if selector.recursive else {"Delimiter": "/"})
            )
            for page in pages:
                found += [
                    pf.FileInfo(f"{bucket}/{one['Prefix'].rstrip('/')}", pf.FileType.Directory)
                    for one in page.get("CommonPrefixes", ())
                ]
                # Some tools leave an empty object where others have a folder.
                found += [
                    _file(f"{bucket}/{one['Key']}", one["Size"], one["LastModified"])
                    for one in page.get("Contents", ())
                    if not one["Key"].endswith("/")
                ]
        if not found and not selector.allow_not_found:
            raise FileNotFoundError(f"there is nothing below '{selector.base_dir}'")
        return found

    # -- removing --

    def delete_file(self, path: str) -> None:
        bucket, key = _split(path)
        with _told("DeleteObject", path):
            self._client.delete_object(Bucket=bucket, Key=key)

    # -- reading and writing --

    def open_input_file(self, path: str) -> pa.NativeFile:
        info = self._info(path)
        if info.type is not pf.FileType.File:
            raise FileNotFoundError(f"there is no object '{path}'")
        raw = _Object(self._client, path, int(info.size))
        return pa.PythonFile(io.BufferedReader(raw, _READ_AHEAD_BYTES), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        return pa.PythonFile(_Upload(self._client, path), mode="w")

    # -- what an object store does not have, or tables do not need --

    def create_dir(self, path: str, recursive: bool) -> None:
        """There are no folders; a key may have any name."""

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        raise _unused("appending to")

    def copy_file(self, source: str, target: str) -> None:
        raise _unused("copying")

    def move(self, source: str, target: str) -> None:
        raise _unused("moving")

    def delete_dir(self, path: str) -> None:
        raise _unused("removing folders of")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise _unused("removing folders of")

    def delete_root_dir_contents(self) -> None:
        raise _unused("removing folders of")


class _Object(io.RawIOBase):
    """An object that does not change, read in ranges."""

    def __init__(self, client: Any, path: str, size: int) -> None:
        self._client = client
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer).cast("B")
        end = min(self._at + len(room), self._size)
        if end <= self._at:
            return 0
        bucket, key = _split(self._path)
        with _told("GetObject", self._path):
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes={self._at}-{end - 1}")
            content = answer["Body"].read()
        if len(content) != end - self._at:
            raise OSError(f"S3 gives {len(content)} bytes of '{self._path}' and not {end - self._at}")
        room[: len(content)] = content
        self._at = end
        return len(content)


class _Upload:
    """An object that is there once this is closed, and whole."""

    def __init__(self, client: Any, path: str) -> None:
        self._client = client
        self._path = path
        self._held = bytearray()
        self._sent = 0
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []
        self._failed: Exception | None = None
        self.closed = False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self._sent + len(self._held)

    def flush(self) -> None:
        """Parts have a least size."""

    def write(self, content: Any) -> int:
        self._held += content
        while len(self._held) >= _PART_BYTES:
            self._send(bytes(self._held[:_PART_BYTES]))
            del self._held[:_PART_BYTES]
        return len(content)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        bucket, key = _split(self._path)
        if self._failed is not None:
            # What is closed after an error must not become an object.
            with suppress(Exception):  # the store forgets it by itself, if its owner told it to
                self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=self._upload)
            raise self._failed
        if self._upload is None:
            with _told("PutObject", self._path):
                self._client.put_object(Bucket=bucket, Key=key, Body=bytes(self._held))
            return
        if self._held:
            self._send(bytes(self._held))
        with _told("CompleteMultipartUpload", self._path):
            self._client.complete_multipart_upload(
                Bucket=bucket, Key=key, UploadId=self._upload, MultipartUpload={"Parts": self._parts}
            )

    def _send(self, content: bytes) -> None:
        bucket, key = _split(self._path)
        number = len(self._parts) + 1
        try:
            with _told("UploadPart", self._path):
                if self._upload is None:
                    self._upload = self._client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
                answer = self._client.upload_part(
                    Bucket=bucket, Key=key, UploadId=self._upload, PartNumber=number, Body=content
                )
        except Exception as error:
            self._failed = error
            raise
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        self._sent += len(content)


@contextmanager
def _told(operation: str, path: str) -> Iterator[None]:
    """Errors as Arrow's own client of S3 has them."""
    from botocore.exceptions import BotoCoreError, ClientError
    from requests import RequestException

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _MISSING:
            raise FileNotFoundError(f"there is no '{path}'") from error
        raise OSError(f"AWS Error {_ARROWS_WORDS.get(code, code)} during {operation} operation") from error
    except BotoCoreError as error:
        raise OSError(f"S3 cannot be asked for {operation} ({type(error).__name__})") from error
    except RequestException as error:
        raise OSError(f"the signing service cannot be reached ({type(error).__name__})") from error


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    return bucket, key


def _file(path: str, size: int, written: Any) -> pf.FileInfo:
    return pf.FileInfo(path, pf.FileType.File, size=size, mtime=written)


def _unused(doing: str) -> NotImplementedError:
    return NotImplementedError(f"{doing} objects whose requests are signed elsewhere is not needed here")
