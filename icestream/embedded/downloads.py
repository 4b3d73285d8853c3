"""Files from a Maven repository: several at once, resumed or repeated when a transfer breaks, verified before
they count. Called by `jars`, one process at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import ssl
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx

from icestream.api.errors import PreconditionError
from icestream.embedded.maven import MIRROR, Repository
from icestream.embedded.progress import Advance, download_progress
from icestream.embedded.trust import trusting_context

_AT_ONCE: Final = 8
_ATTEMPTS: Final = 5
_FIRST_PAUSE_S: Final = 0.5
_MUCH: Final = 1_000_000
"""A transfer that brought so much before it broke does not count as an attempt."""
_TIMEOUT: Final = httpx.Timeout(30.0, connect=15.0)
_TO_REPEAT: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


@dataclass(frozen=True)
class Download:
    path: str
    """Below the address of the repository."""
    target: Path
    size: int
    sha256: str

    @property
    def part(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part")


class _Broken(Exception):
    """The transfer may be tried again; the reason for people."""


class _Wrong(Exception):
    """It is not the file of the lock file; what differs."""


class _Over(Exception):
    """Another download has failed, or the user has interrupted."""


def download(
    files: Sequence[Download], repository: Repository, what: str, environ: Mapping[str, str] = os.environ
) -> None:
    """Bring every file to its target, complete and verified. What was transferred of one is kept for the next
    try."""
    total = sum(file.size for file in files)
    over = threading.Event()
    with _client(repository, environ) as client, download_progress(what, total) as advance:
        each = _Each(client, repository, advance, over)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="download") as pool:
            # The largest first: it takes longest.
            wanted = sorted(files, key=lambda file: -file.size)
            running = [pool.submit(each.bring, file) for file in wanted]
            try:
                for done in as_completed(running):
                    done.result()
            except BaseException:
                over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _client(repository: Repository, environ: Mapping[str, str]) -> httpx.Client:
    login = httpx.BasicAuth(*repository.login) if repository.login else None
    trusted = trusting_context(environ)
    try:
        return httpx.Client(
            auth=login,
            verify=trusted,
            timeout=_TIMEOUT,
            follow_redirects=True,
            # The size of a file is known of the file itself, not of its compressed form.
            headers={"Accept-Encoding": "identity", "User-Agent": "icestream"},
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        # A proxy of another kind than HTTP. Its address may hold a password.
        raise PreconditionError(
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names a proxy that cannot be used;"
            " set it to the address of an HTTP proxy, http://host:port"
        ) from error


class _Here:
    """How much of a file is here, as the progress shows it."""

    def __init__(self, part: Path, advance: Advance) -> None:
        self._part, self._advance = part, advance
        self.size = part.stat().st_size if part.exists() else 0
        advance(self.size)

    def grow(self, count: int) -> None:
        self.size += count
        self._advance(count)

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)
        self.grow(-self.size)


@dataclass(frozen=True)
class _Each:
    client: httpx.Client
    repository: Repository
    advance: Advance
    over: threading.Event

    def bring(self, file: Download) -> None:
        try:
            self._bring(file)
        except _Over:
            return
        except OSError as error:
            raise _disk_error(file, error) from error

    def _bring(self, file: Download) -> None:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        here = _Here(file.part, self.advance)
        broken, wrong = 0, 0
        while True:
            before = here.size
            try:
                if before != file.size:
                    self._transfer(file, here)
                _verify(file)
                file.part.replace(file.target)
                return
            except _Wrong as error:
                here.discard()
                wrong += 1
                # What was begun earlier may be to blame, or a proxy that has cut it off.
                if wrong == 2:
                    raise PreconditionError(
                        f"{self.repository.url}/{file.path} {error}; {self._remedy()}"
                    ) from error
            except _Broken as error:
                broken = 1 if here.size - before >= _MUCH else broken + 1
                if broken == _ATTEMPTS:
                    raise self._unreachable(file, str(error)) from error
                if self.over.wait(_FIRST_PAUSE_S * 2 ** (broken - 1)):
                    raise _Over from error

    def _transfer(self, file: Download, here: _Here) -> None:
        """Fetches what is missing of the file."""
        if here.size > file.size:
            raise _Wrong(f"has more than the {file.size:,} bytes of the lock file")
        headers = {"Range": f"bytes={here.size}-"} if here.size else {}
        url = f"{self.repository.url}/{file.path}"
        try:
            with self.client.stream("GET", url, headers=headers) as response:
                self._check(file, response)
                if response.status_code != HTTPStatus.PARTIAL_CONTENT:
                    here.discard()
                length = response.headers.get("Content-Length", "")
                if length.isdecimal() and here.size + int(length) != file.size:
                    found = here.size + int(length)
                    raise _Wrong(f"has {found:,} bytes, not {file.size:,} as in the lock file")
                with file.part.open("ab") as part:
                    for chunk in response.iter_raw():
                        if self.over.is_set():
                            raise _Over
                        part.write(chunk)
                        here.grow(len(chunk))
                        if here.size > file.size:
                            raise _Wrong(f"has more than the {file.size:,} bytes of the lock file")
        except httpx.HTTPError as error:
            self._raise_if_certificate(error)
            raise _Broken(_reason(error)) from error
        if here.size < file.size:
            raise _Broken("the connection was closed before the end of the file")

    def _check(self, file: Download, response: httpx.Response) -> None:
        status = response.status_code
        if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _Wrong("is shorter than what was fetched of it before")
        if status in _TO_REPEAT:
            raise _Broken(f"it answered {status}")
        address = self.repository.url
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise PreconditionError(
                f"{address} refused {file.path} ({status}); set {MIRROR}=https://user:password@host/path"
                " with a login that may read it"
            )
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise PreconditionError(f"{address} has no {file.path} ({status}); {self._remedy()}")
        raise PreconditionError(f"{address} answered {status} for {file.path}; {self._remedy()}")

    def _remedy(self) -> str:
        if self.repository.is_mirror:
            return f"see that this mirror follows Maven Central, or set {MIRROR} to another one"
        return f"see what your proxy does, or set {MIRROR} to a mirror"

    def _raise_if_certificate(self, error: httpx.HTTPError) -> None:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise PreconditionError(
                    f"the certificate of {self.repository.url} was refused ({cause.verify_message});"
                    " set SSL_CERT_FILE to a file with the certificate authority of your company or proxy"
                ) from error
            cause = cause.__cause__ or cause.__context__

    def _unreachable(self, file: Download, reason: str) -> PreconditionError:
        return PreconditionError(
            f"cannot download {file.target.name} from {self.repository.url} ({reason}); check the network,"
            f" or set HTTPS_PROXY to your proxy or {MIRROR} to a mirror, then try again"
        )


def _verify(file: Download) -> None:
    with file.part.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file.sha256:
        raise _Wrong(f"has the SHA-256 {found[:16]}…, not {file.sha256[:16]}… as in the lock file")


def _reason(error: httpx.HTTPError) -> str:
    # Some have no text of their own, such as a timeout.
    return str(error).strip() or type(error).__name__


def _disk_error(file: Download, error: OSError) -> PreconditionError:
    folder = file.target.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PreconditionError(
            f"the disk of {folder} is full; free some space or set ICESTREAM_HOME to another disk"
        )
    return PreconditionError(
        f"{file.target} cannot be written ({error.strerror or error});"
        " set ICESTREAM_HOME to a folder that can"
    )
