"""Could data files be written there? Looks at a warehouse or a table's location and changes nothing; called
to check configs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pf
from pyiceberg.io.pyarrow import PyArrowFileIO

from icestream.api.errors import Problem
from icestream.connectors.iceberg.catalogs.opening import PREFIX, told
from icestream.connectors.iceberg.catalogs.remote_signing import SignatureRefused, SignedFileIO, is_signed

_S3 = ("s3", "s3a", "s3n")
_ENDPOINT = f"{PREFIX}s3.endpoint"
_WRONG_KEY = "AWS Error INVALID_ACCESS_KEY_ID"
_WRONG_SECRET = "AWS Error SIGNATURE_DOES_NOT_MATCH"
_DENIED = "AWS Error ACCESS_DENIED"
_NO_BUCKET = "AWS Error NO_SUCH_BUCKET"


def is_checkable(location: str) -> bool:
    return urlsplit(location).scheme in ("", "file", *_S3) and location.strip() != ""


def storage_key(properties: Mapping[str, str], otherwise: str) -> str:
    """The key to blame when the storage does not answer."""
    return _ENDPOINT if properties.get("s3.endpoint") else otherwise


def check_place(location: str, properties: Mapping[str, str], key: str) -> list[Problem]:
    """What keeps us from writing there. `properties` are a catalog's or a table's, in PyIceberg's names;
    `key` is the one that names the place."""
    parts = urlsplit(location)
    if parts.scheme in _S3:
        try:
            return _check_bucket(parts.netloc, parts.path.strip("/"), properties, key)
        except OSError as error:
            return [storage_problem(error, properties, key)]
    return _check_folder(Path(unquote(parts.path)), key)


def storage_problem(error: OSError, properties: Mapping[str, str], key: str) -> Problem:
    """An object store's error, on the key that is most likely wrong."""
    # Arrow tells S3's error codes in its text only.
    text = str(error)
    if _WRONG_KEY in text or _DENIED in text:
        return _problem(f"{PREFIX}s3.access-key-id", f"{_reason(error)}; correct the login or its rights")
    if _WRONG_SECRET in text:
        return _problem(f"{PREFIX}s3.secret-access-key", f"{_reason(error)}; correct the secret")
    if _NO_BUCKET in text:
        return _problem(key, f"{_reason(error)}; create the bucket, or correct its name")
    if isinstance(error, FileNotFoundError):
        return _problem(key, f"{_reason(error)}; restore the file, or create the table again")
    return _problem(storage_key(properties, key), f"{_reason(error)}; check the address and the network")


def _check_bucket(bucket: str, prefix: str, properties: Mapping[str, str], key: str) -> list[Problem]:
    files = SignedFileIO if is_signed(properties) else PyArrowFileIO
    store = files(dict(properties)).fs_by_scheme("s3", bucket)
    nowhere = "/".join(part for part in (bucket, prefix, f".icestream-check-{uuid.uuid4().hex}") if part)
    try:
        store.get_file_info(pf.FileSelector(nowhere, allow_not_found=True))
        there = store.get_file_info(bucket).type is not pf.FileType.NotFound
    except SignatureRefused:
        # A service signs for the files of a table, and perhaps for nothing beside them.
        return []
    except OSError as error:
        if _DENIED not in str(error):
            raise
        # A login may be allowed to write and not to list. To know more we would have to write.
        return []
    if there:
        return []
    place = properties.get("s3.endpoint") or "S3"
    return [_problem(key, f"bucket '{bucket}' does not exist at {place}; create it, or correct its name")]


def _check_folder(folder: Path, key: str) -> list[Problem]:
    """A folder that is missing is made with the first file: then the next one above it counts."""
    there = next(place for place in (folder, *folder.parents) if place.exists() or place == place.parent)
    if not there.is_dir():
        return [_problem(key, f"'{there}' is not a folder; choose another place")]
    if not os.access(there, os.W_OK | os.X_OK):
        return [_problem(key, f"'{there}' is not writable for this user; change its rights, or the place")]
    return []


def _problem(key: str, message: str) -> Problem:
    return Problem(key, f"{key}: {message}.")


def _reason(error: OSError) -> str:
    return told(error).partition(" (Request ID")[0]
