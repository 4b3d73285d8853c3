"""Where Delta tables are, and how both sides get there: delta-rs in the manager, Arrow in the tasks."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pf

from icestream.api.config import Config
from icestream.api.errors import SinkRefused, SinkUnavailable
from icestream.waits import waiting_for

S3: Final = "delta.storage.s3."
S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_REGION: Final = "us-east-1"
_RETRIES: Final = "8"
_RETRY_TIMEOUT: Final = "60s"
"""For one request with its repetitions: less than a call to a target may take."""
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|NO_SUCH_BUCKET|AccessDenied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|NoSuchBucket|ExpiredToken|(?i:401 Unauthorized|403 Forbidden|permission denied)"
)
"""In the words of Arrow's file systems, and of delta-rs."""
_STATUS: Final = re.compile(r"status code: (\d{3}[ A-Za-z]*)|\b(\d{3} [A-Z][A-Za-z ]+)")
_UNREACHED: Final = re.compile(r"Connection refused|timed out|dns error|Connection reset|broken pipe", re.I)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Storage:
    """How a config says that its tables are reached. Plain data: it crosses process boundaries."""

    endpoint: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    path_style: bool = True

    @classmethod
    def from_config(cls, config: Config) -> Storage:
        def given(name: str) -> str:
            return config.get(f"{S3}{name}", "").strip()

        return cls(
            given("endpoint"),
            given("region"),
            given("access-key-id"),
            given("secret-access-key"),
            given("session-token"),
            given("path-style-access").lower() != "false",
        )

    def for_delta(self, location: str) -> dict[str, str]:
        """The options of delta-rs. A commit is a conditional put, which needs no setting."""
        if urlsplit(location).scheme not in S3_SCHEMES:
            return {}
        options = {
            "AWS_REGION": self.region or _REGION,
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false" if self.path_style else "true",
            "AWS_S3_ALLOW_UNSAFE_RENAME": "false",
            "max_retries": _RETRIES,
            "retry_timeout": _RETRY_TIMEOUT,
        }
        if self.endpoint:
            options["AWS_ENDPOINT_URL"] = self.endpoint
            options["AWS_ALLOW_HTTP"] = str(self.endpoint.startswith("http://")).lower()
        for name, value in (
            ("AWS_ACCESS_KEY_ID", self.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", self.secret_access_key),
            ("AWS_SESSION_TOKEN", self.session_token),
        ):
            if value:
                options[name] = value
        return options

    def file_system(self, location: str) -> pf.FileSystem:
        return _s3(self) if urlsplit(location).scheme in S3_SCHEMES else pf.LocalFileSystem()


@functools.lru_cache(maxsize=32)
def _s3(storage: Storage) -> pf.FileSystem:
    """One for all tables that are reached alike: it holds connections."""
    address = urlsplit(storage.endpoint)
    options: dict[str, object] = {"region": storage.region or _REGION}
    if storage.endpoint:
        options |= {
            "endpoint_override": address.netloc,
            "scheme": address.scheme,
            "force_virtual_addressing": not storage.path_style,
        }
    if storage.access_key_id:
        options |= {"access_key": storage.access_key_id, "secret_key": storage.secret_access_key}
    if storage.session_token:
        options["session_token"] = storage.session_token
    return pf.S3FileSystem(connect_timeout=10, request_timeout=60, **options)


def is_local(location: str) -> bool:
    return urlsplit(location).scheme not in S3_SCHEMES


def table_uri(location: str) -> str:
    """A table's place as delta-rs takes it."""
    parts = urlsplit(location)
    if parts.scheme in S3_SCHEMES:
        return f"s3://{parts.netloc}/{parts.path.strip('/')}"
    return file_path(location)


def file_path(location: str) -> str:
    """A table's place as Arrow's file systems name it."""
    parts = urlsplit(location)
    if parts.scheme in S3_SCHEMES:
        return f"{parts.netloc}/{parts.path.strip('/')}"
    path = unquote(parts.path) if parts.scheme == "file" else location
    return posixpath.normpath(path)


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Raise our error instead of those of Arrow's file systems, and of delta-rs where it cannot get there."""
    try:
        with waiting_for(f"storage: {doing}"):
            yield
    except OSError as error:
        raise unavailable(doing, error) from error


def unavailable(doing: str, error: BaseException) -> SinkUnavailable:
    """Our error: whether the storage is away, or answers and refuses, is in its text only."""
    kind = SinkRefused if _REFUSED.search(str(error)) else SinkUnavailable
    return kind(f"{doing}: {told(error)}")


def told(error: BaseException) -> str:
    """The reason for those who may see a connector: of what a server answers only the code.

    Its words may be those of any host that the worker reaches and its users do not.
    """
    text = _COLOURS.sub("", str(error))
    if (status := _STATUS.search(text)) is not None:
        return f"the storage answers HTTP {(status[1] or status[2]).strip()}"
    if (why := _UNREACHED.search(text)) is not None:
        return f"the storage cannot be reached ({why[0]})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if "<" in text:
        return type(error).__name__
    return " ".join(text.split())[:300]
