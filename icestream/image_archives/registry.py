"""One repository of a container registry, by the HTTP API of the distribution specification: blobs and
manifests, sent only where they are missing. Used by `push` and by the operator.

No redirect is followed: none of these requests needs one, and each would carry a login to a host that nobody
named.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from icestream.api.errors import RegistryRefused, RegistryUnavailable
from icestream.image_archives.http_answers import error_codes, limited_body
from icestream.image_archives.layouts import DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from icestream.image_archives.limits import MIB
from icestream.image_archives.token_logins import challenge_in, fetched_token

if TYPE_CHECKING:
    import httpx

    from icestream.image_archives.logins import Login
    from icestream.image_archives.references import Target

_ACCEPTED: Final = ", ".join((OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST))
_CONNECT_SECONDS: Final = 15.0
_READ_SECONDS: Final = 300.0
"""A registry may take minutes to store a chunk, and to check a large blob."""
CHUNK_BYTES: Final = 32 * MIB
"""Of one request: proxies limit them. Amazon's registry wants 5 MiB at least."""
_LARGEST_CHUNK: Final = 64 * MIB
"""Whatever a registry asks for: a chunk is in memory, and several images may be on their way."""
_ATTEMPTS: Final = 3
_FIRST_WAIT: Final = 1.0


@dataclass(frozen=True)
class BlobContent:
    """What is uploaded: a blob that can be read again for another attempt."""

    digest: str
    size: int
    open: Callable[[], BinaryIO]


class Registry:
    """Open while its context lasts. Raises `RegistryUnavailable` or `RegistryRefused`, one sentence each."""

    def __init__(
        self,
        target: Target,
        login: Login | None = None,
        *,
        token_hosts: frozenset[str] = frozenset(),
        chunk_bytes: int = CHUNK_BYTES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        self.target = target
        self._login = login
        self._token_hosts = token_hosts
        self._chunk_bytes = chunk_bytes
        self._sleep = sleep
        self._authorization: str | None = None
        self._base = (
            f"{'http' if target.is_plain_http else 'https'}://{target.api_host}/v2/{target.repository}/"
        )
        self._http = httpx.Client(
            # The system's authorities, and those of SSL_CERT_FILE.
            verify=ssl.create_default_context(),
            timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            headers={"User-Agent": "icestream", "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def has_manifest(self, reference: str) -> str | None:
        """The digest of a manifest, by its digest or tag; None: it is not there."""
        answer = self._call(
            "HEAD", f"manifests/{reference}", headers={"Accept": _ACCEPTED}, expected=(200, 404)
        )
        if answer.status == 404:
            return None
        return answer.headers.get("docker-content-digest") or reference

    def has_blob(self, digest: str) -> bool:
        # 307: it is there, and a store of the registry's would send it.
        return self._call("HEAD", f"blobs/{digest}", expected=(200, 307, 404)).status != 404

    def put_manifest(self, reference: str, document: bytes, media_type: str, digest: str) -> None:
        answer = self._call(
            "PUT",
            f"manifests/{reference}",
            headers={"Content-Type": media_type},
            content=document,
            expected=(200, 201),
        )
        stored = answer.headers.get("docker-content-digest", digest)
        if stored != digest:
            raise RegistryRefused(
                f"the registry '{self.target.host}' stored another manifest than it was sent"
            )

    def put_blob(self, blob: BlobContent) -> bool:
        """False: it was there already. An upload that fails is begun again."""
        for attempt in range(_ATTEMPTS):
            if self.has_blob(blob.digest):
                return attempt > 0
            try:
                self._upload(blob)
                return True
            except RegistryUnavailable:
                if attempt + 1 == _ATTEMPTS:
                    raise
                self._sleep(_FIRST_WAIT * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _upload(self, blob: BlobContent) -> None:
        answer = self._call("POST", "blobs/uploads/", expected=(202,))
        place = self._place(answer)
        wanted = answer.headers.get("oci-chunk-min-length", "")
        smallest = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 12 else 0
        step = min(max(self._chunk_bytes, smallest), _LARGEST_CHUNK)
        with blob.open() as file:
            for start in range(0, blob.size, step):
                chunk = file.read(min(step, blob.size - start))
                headers = {"Content-Type": "application/octet-stream"}
                if blob.size > step:
                    headers["Content-Range"] = f"{start}-{start + len(chunk) - 1}"
                answer = self._call("PATCH", place, headers=headers, content=chunk, expected=(202, 204))
                place = self._place(answer)
        query = "&" if urlsplit(place).query else "?"
        self._call("PUT", f"{place}{query}digest={blob.digest}", content=b"", expected=(201, 204))

    def _place(self, answer: _Answer) -> str:
        """Where an upload goes on: at the registry itself only, whatever scheme a proxy makes of it."""
        location = str(answer.headers.get("location", ""))
        here = urlsplit(self._base)
        try:
            there = urlsplit(urljoin(answer.url, location))
            is_here = bool(location) and there.hostname == here.hostname and _port(there) == _port(here)
        except ValueError:
            is_here = False
        if not is_here:
            raise RegistryRefused(
                f"the registry '{self.target.host}' wants the upload at another host: give that one's address"
            )
        return urlunsplit((here.scheme, here.netloc, there.path, there.query, ""))

    def _call(
        self,
        verb: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        expected: tuple[int, ...],
    ) -> _Answer:
        """With the login that the registry asks for, if it does: at first, or because a token has expired."""
        url = urljoin(self._base, path)
        answer = self._once(verb, url, headers or {}, content)
        if answer.status == 401:
            self._authorization = self._logged_in(answer)
            answer = self._once(verb, url, headers or {}, content)
        if answer.status in expected:
            return answer
        raise self._error(verb, answer)

    def _once(self, verb: str, url: str, headers: Mapping[str, str], content: bytes | None) -> _Answer:
        own = {**headers, **({"Authorization": self._authorization} if self._authorization else {})}
        with self._network_errors(), self._http.stream(verb, url, headers=own, content=content) as answer:
            return _Answer(answer.status_code, answer.headers, limited_body(answer), url)

    def _logged_in(self, answer: _Answer) -> str:
        import httpx

        offered = [
            challenge
            for header in answer.headers.get_list("www-authenticate")
            if (challenge := challenge_in(header))
        ]
        bearer = next((one for one in offered if one.scheme == "bearer"), None)
        if bearer:
            with self._network_errors():
                token = fetched_token(self._http, bearer, self.target, self._login, self._token_hosts)
            return f"Bearer {token}"
        if not offered or self._login is None:
            why = "there is none for it" if self._login is None else "it says not how"
            raise RegistryRefused(f"the registry '{self.target.host}' wants a login, and {why}")
        request = httpx.Request("GET", self._base)
        flow = httpx.BasicAuth(self._login.user, self._login.password).auth_flow(request)
        return str(next(flow).headers["Authorization"])

    def _error(self, verb: str, answer: _Answer) -> RegistryRefused | RegistryUnavailable:
        host, status = self.target.host, answer.status
        codes = error_codes(answer.body)
        if status >= 500 or status in (408, 425, 429):
            return RegistryUnavailable(f"the registry '{host}' answered {status}{codes}: it is tried again")
        if status in (401, 403):
            return RegistryRefused(
                f"the registry '{host}' does not let this login push to '{self.target.repository}'"
                f" ({status}{codes}): check the login and its rights"
            )
        if 300 <= status < 400:
            return RegistryRefused(
                f"the registry '{host}' redirects ({status}), which is not followed: give its real address"
            )
        return RegistryRefused(
            f"the registry '{host}' answered {status}{codes} to {verb} for '{self.target.repository}'"
        )

    @contextmanager
    def _network_errors(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            kind = type(error).__name__
            raise RegistryUnavailable(
                f"the registry '{self.target.host}' does not answer as one ({kind}): check its address"
                f"{'' if self.target.is_plain_http else ', and whether it speaks TLS'}"
            ) from error


def _port(address: SplitResult) -> int | None:
    return None if address.port in (80, 443) else address.port


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    body: bytes
    url: str
