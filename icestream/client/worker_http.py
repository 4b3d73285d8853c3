"""One worker over HTTP: requests, answers, and one sentence for whatever goes wrong. Used by the client.

It stands on `http.client`, because the command line has to start in a blink. Every request has a connection
of its own: a worker that was restarted meanwhile is no special case.
"""

from __future__ import annotations

import json
import re
import socket
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import unquote, urlencode, urlsplit

from icestream.api.errors import (
    AlreadyExistsError,
    ConfigError,
    IcestreamError,
    NotFoundError,
    NotReadyError,
    PreconditionError,
    Problem,
    WorkerUnreachable,
)
from icestream.api.nesting import read_json

if TYPE_CHECKING:
    from ssl import SSLContext

_CHANGE_TIMEOUT: Final = 100.0
_LARGEST_ANSWER: Final = 32 * 2**20
"""A worker gives up on a request after 90 s; its answer says more than our impatience."""
_CONNECT_TIMEOUT: Final = 10.0
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_INVALID_CONFIG: Final = "Connector configuration is invalid"

Query = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Credentials:
    """How to prove who we are, and how the worker has to."""

    user: str | None = None
    """`name:password`, for basic authentication."""
    cacert: str | None = None
    """A PEM file with the authorities to trust, instead of the system's."""
    is_insecure: bool = False
    """Take any certificate."""

    def __repr__(self) -> str:
        return f"Credentials(user={self.user and '[hidden]'!r}, cacert={self.cacert!r})"


@dataclass(frozen=True)
class Advice:
    """What to do next, as ends of sentences; as they stand, for people who have typed a command."""

    no_worker: str = "start one with 'icestream standalone', or set --url"
    other_server: str = "set --url to a worker's REST address"
    no_host: str = "check the address"
    not_trusted: str = "name its authority with --cacert"
    other_user: str = "set --user"
    moved: str = "set --url to that"
    no_path: str = "is the worker older than this command?"


@dataclass(frozen=True)
class Answer:
    status: int
    reason: str
    body: bytes
    location: str | None

    def json(self) -> Any:
        return read_json(self.body)


class WorkerHttp:
    """Every call raises one sentence when it fails."""

    def __init__(
        self, url: str, timeout: float, credentials: Credentials, advice: Advice | None = None
    ) -> None:
        self._address = _Address.parse(url)
        self.url = self._address.url
        self._timeout = timeout
        self._credentials = credentials
        self._advice = advice or Advice()
        self._tls: SSLContext | None = None

    def json(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> Any:
        try:
            return self.call(verb, path, query, body).json()
        except ValueError:
            return None

    def object(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> dict[str, Any]:
        found = self.json(verb, path, query, body)
        return found if isinstance(found, dict) else self.strange(path)

    def array(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> list[Any]:
        found = self.json(verb, path, query, body)
        return found if isinstance(found, list) else self.strange(path)

    def strange(self, path: str) -> NoReturn:
        raise IcestreamError(
            f"{self.url}{path} does not answer as Kafka Connect does; {self._advice.other_server}"
        )

    def call(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> Answer:
        answer = self.exchange(verb, path, query, body)
        if answer.status >= 300:
            raise self._refusal(answer, path)
        return answer

    def exchange(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> Answer:
        target = self._address.prefix + path + (f"?{urlencode(query, doseq=True)}" if query else "")
        connection = self._open()
        patience = self._timeout if verb == "GET" else max(self._timeout, _CHANGE_TIMEOUT)
        try:
            connection.connect()
            connection.sock.settimeout(patience)
            connection.request(verb, target, *self._content(body))
            return _read(connection.getresponse())
        except TimeoutError:
            raise WorkerUnreachable(f"{self.url} did not answer {verb} {path} in time; try again") from None
        except (OSError, HTTPException, UnicodeError) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _open(self) -> HTTPConnection:
        patience = min(self._timeout, _CONNECT_TIMEOUT)
        if not self._address.is_tls:
            return HTTPConnection(self._address.host, self._address.port, timeout=patience)
        if self._tls is None:
            self._tls = _tls_context(self._credentials)
        return HTTPSConnection(self._address.host, self._address.port, timeout=patience, context=self._tls)

    def _content(self, body: Any) -> tuple[bytes | None, dict[str, str]]:
        headers = {"Accept": "application/json", "Connection": "close"}
        user = self._credentials.user or self._address.user
        if user:
            headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        if body is None:
            return None, headers
        return json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}

    def _unreachable(self, error: Exception) -> WorkerUnreachable:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return WorkerUnreachable(
                f"the certificate of {self.url} is not trusted ({error.verify_message}); "
                f"{self._advice.not_trusted}"
            )
        if isinstance(error, ConnectionRefusedError):
            return WorkerUnreachable(f"no worker answers at {self.url}; {self._advice.no_worker}")
        if isinstance(error, socket.gaierror):
            return WorkerUnreachable(f"cannot find the host '{self._address.host}'; {self._advice.no_host}")
        return WorkerUnreachable(f"cannot talk to {self.url} ({_reason(error)}); {self._advice.no_host}")

    def _refusal(self, answer: Answer, path: str) -> IcestreamError:
        try:
            message = str(answer.json()["message"])
        except (ValueError, KeyError, TypeError):
            message = f"{self.url}{path} answered {answer.status} {answer.reason}"
        if answer.status < 400:
            return PreconditionError(f"{self.url} sends us to {answer.location}; {self._advice.moved}")
        if answer.status == 401:
            return PreconditionError(
                f"{self.url} wants another user name or password; {self._advice.other_user}"
            )
        if answer.status == 400:
            return ConfigError(_problems(message))
        if answer.status == 404 and message.startswith("HTTP 404"):
            return NotFoundError(f"{self.url}{path} does not exist; {self._advice.no_path}")
        if answer.status == 404:
            return NotFoundError(message)
        if answer.status == 409:
            return (
                AlreadyExistsError(message) if message.endswith("already exists") else NotReadyError(message)
            )
        return IcestreamError(message)


@dataclass(frozen=True)
class _Address:
    host: str
    port: int
    is_tls: bool
    prefix: str
    user: str | None

    @classmethod
    def parse(cls, url: str) -> _Address:
        text = url.strip()
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            is_tls = parts.scheme == "https"
            port = parts.port or (443 if is_tls else 80)
        except ValueError as error:
            raise PreconditionError(
                f"'{_without_user(url)}' is not an address ({error}); write http://host:port"
            ) from None
        is_plain = parts.hostname and not _BLANK.search(parts.netloc + parts.path)
        if parts.scheme not in ("http", "https") or not is_plain or parts.query or parts.fragment:
            raise PreconditionError(f"'{_without_user(url)}' is not an address; write http://host:port")
        assert parts.hostname
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
        return cls(parts.hostname, port, is_tls, parts.path.rstrip("/"), user)

    @property
    def url(self) -> str:
        """The address without the password that it may have come with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme, usual = ("https", 443) if self.is_tls else ("http", 80)
        port = "" if self.port == usual else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}"


def _without_user(url: str) -> str:
    """An address that may be shown: a password may be in it."""
    return re.sub(r"(^|//).*@", r"\1[hidden]@", url)


def _tls_context(credentials: Credentials) -> SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=credentials.cacert)
    except OSError as error:
        raise PreconditionError(
            f"'{credentials.cacert}' has no certificates ({error.strerror or error}); name a PEM file"
        ) from None
    if credentials.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _read(response: HTTPResponse) -> Answer:
    """Of a server that may be anybody's: what does not fit into memory is not read."""
    body = response.read(_LARGEST_ANSWER + 1)
    if len(body) > _LARGEST_ANSWER:
        raise HTTPException(f"an answer of more than {_LARGEST_ANSWER // 2**20} MiB")
    if response.length:
        raise IncompleteRead(body, response.length)
    return Answer(response.status, response.reason, body, response.getheader("Location"))


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())


def _problems(message: str) -> list[Problem]:
    """The errors of a refused config, without the frame that Kafka Connect puts around them."""
    first, *lines = message.splitlines() or [""]
    if not first.startswith(_INVALID_CONFIG) or len(lines) < 2:
        return [Problem("", message)]
    return [Problem("", line) for line in lines[:-1]]
