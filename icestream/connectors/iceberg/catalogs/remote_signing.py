"""Tables whose catalog signs every request to S3: this side never has the keys.

The catalogs of `guarded_catalogs.py` say for each table whether it is one (`signed_properties`); the
processes of the pipeline open its files by what they said (`file_io`). A request is described to the signing
service, which answers with the headers of the signature; `signed_storage.py` sends it. The protocol is that
of Iceberg's REST catalogs.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import pyarrow.fs as pf
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import (
    PREFIX,
    SIGNER_ENDPOINTS,
    SIGNER_URIS,
    storage_properties,
)

_ENABLED: Final = "s3.remote-signing-enabled"
_PYICEBERGS: Final = ("s3.signer", "S3V4RestSigner")
_USUAL_PATH: Final = "v1/aws/s3/sign"
_URL: Final = "icestream.signer.url"
_HEADERS: Final = "icestream.signer.headers"
"""Where requests are signed, and what is sent along with the question: the login, mostly. Said by us alone:
no config, server or table may."""
_S3: Final = frozenset({"s3", "s3a", "s3n"})
_ASKED: Final = ("content-type", "content-md5", "range")
_REGIONS: Final = ("s3.region", "client.region")
_PORTS: Final = {"http": 80, "https": 443}
_SPELLED: Final = frozenset({"true", "false"})
_ATTEMPTS: Final = 3
_PASSING: Final = (429, 500, 502, 503, 504)


class SignatureRefused(PermissionError):
    """The signing service does not sign a request."""


def asks_for_signing(properties: Mapping[str, Any]) -> bool:
    """Whether requests are to be signed by a service, in Java's words or in PyIceberg's."""
    said = str(properties.get(_ENABLED) or "").strip().lower()
    if said in _SPELLED:
        return said == "true"
    return properties.get(_PYICEBERGS[0]) == _PYICEBERGS[1]


def signed_properties(
    properties: Mapping[str, Any], catalog_uri: str, chosen: str | None, headers: Mapping[str, str]
) -> dict[str, str]:
    """What opens the files of a table whose requests are signed elsewhere.

    `properties` are what catalog and table say; `chosen` is the signer's address in the connector's config.
    The login of the catalog goes to the catalog's own host or to the chosen one, wherever a table points.
    """
    _require_botocore()
    place = next((str(properties[key]) for key in SIGNER_URIS if properties.get(key)), chosen or catalog_uri)
    path = next(
        (str(properties[key]) for key in SIGNER_ENDPOINTS if properties.get(key)), _USUAL_PATH
    ).strip()
    url = path if "://" in path else f"{place.rstrip('/')}/{path.lstrip('/')}"
    if _origin(url) not in (_origin(catalog_uri), *([_origin(chosen)] if chosen else [])):
        parts = urlsplit(url)
        raise _problem(
            "s3.signer.uri",
            f"a table is to be signed for at {parts.scheme}://{parts.netloc.rpartition('@')[2]}, which is "
            "not the catalog's own host, so the catalog's login is not sent there; set the key to that "
            "address if it may be",
        )
    return {**storage_properties(properties), _URL: url, _HEADERS: json.dumps(dict(headers), sort_keys=True)}


def carried_properties(io: FileIO) -> dict[str, str]:
    """What another process needs to open the files that this one opens with `io`."""
    ours = {key: str(io.properties[key]) for key in (_URL, _HEADERS) if isinstance(io, SignedFileIO)}
    return {**storage_properties(io.properties), **ours}


def is_signed(properties: Mapping[str, Any]) -> bool:
    return _URL in properties


def file_io(properties: Mapping[str, str], location: str | None = None) -> FileIO:
    """Opens the files of a table. The properties are ours: of a plan, or of `signed_properties`."""
    return (
        SignedFileIO(dict(properties)) if is_signed(properties) else load_file_io(dict(properties), location)
    )


class SignedFileIO(PyArrowFileIO):
    """Arrow's file systems, with one of our own for S3: Arrow's signs by itself."""

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> pf.FileSystem:
        if scheme in _S3:
            return _storage(json.dumps(self.properties, sort_keys=True))
        return super()._initialize_fs(scheme, netloc)


@functools.lru_cache(maxsize=32)
def _storage(properties: str) -> pf.FileSystem:
    # Late: whoever signs by itself needs none of it.
    from icestream.connectors.iceberg.catalogs.signed_storage import SignedStorage, s3_client

    said: dict[str, str] = json.loads(properties)
    return pf.PyFileSystem(SignedStorage(s3_client(said, _region(said), RemoteSigner(said))))


def _region(properties: Mapping[str, str]) -> str:
    region = next((properties[key] for key in _REGIONS if properties.get(key)), None)
    if region is None and not properties.get("s3.endpoint"):
        raise _problem("client.region", "the region is missing: a signature names it; set it")
    return region or "us-east-1"


class RemoteSigner:
    """Has requests signed by a service, right before botocore sends them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        from requests import Session
        from urllib3.util import Retry

        from icestream.connectors.iceberg.catalogs.signed_requests import TimedAdapter

        self._url = properties[_URL]
        self._headers: dict[str, str] = json.loads(properties[_HEADERS])
        self._session = Session()
        # Otherwise a login of this machine's `.netrc` would go there.
        self._session.auth = self._log_in
        again = Retry(
            _ATTEMPTS,
            status_forcelist=_PASSING,
            allowed_methods=None,
            backoff_factor=0.2,
            raise_on_status=False,
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, TimedAdapter(properties, max_retries=again, pool_maxsize=32))

    def _log_in(self, request: Any) -> Any:
        request.headers.update(self._headers)
        return request

    def __call__(self, request: Any, **_: Any) -> None:
        """Sign a request of botocore."""
        # As Java's client does: bodies are not signed, or the service would have to see them.
        _set(request.headers, "x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        asked = {
            "method": request.method,
            "region": request.context["client_region"],
            "uri": request.url,
            # Only what nobody on the way changes.
            "headers": {
                name: [value]
                for name, value in request.headers.items()
                if name.lower() in _ASKED or name.lower().startswith("x-amz-")
            }
            | {"Host": [urlsplit(request.url).netloc]},
            "properties": {},
            "provider": "s3",
        }
        uri, headers = self._signed(asked)
        if _origin(uri) != _origin(request.url):
            raise SignatureRefused(f"{self._name()} signs for another host than the one that was asked for")
        for name, values in headers.items():
            # Not any header: the service signs, and says nothing else to the store.
            if name.lower() == "authorization" or name.lower().startswith("x-amz-"):
                _set(request.headers, name, ", ".join(values))
        request.url = uri

    def _signed(self, asked: Mapping[str, Any]) -> tuple[str, Mapping[str, Collection[str]]]:
        answer = self._session.post(self._url, json=asked, allow_redirects=False)
        if answer.status_code in _PASSING:
            raise OSError(f"{self._name()} answers HTTP {answer.status_code}")
        if answer.status_code != 200:
            raise SignatureRefused(
                f"{self._name()} answers HTTP {answer.status_code} when asked to sign a {asked['method']}"
            )
        try:
            found = answer.json()
            uri, headers = str(found["uri"]), found["headers"]
            return uri, {
                str(name): [str(one) for one in (values if isinstance(values, list) else [values])]
                for name, values in headers.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SignatureRefused(f"{self._name()} answers with something that is no signature") from error

    def _name(self) -> str:
        parts = urlsplit(self._url)
        return f"the signing service at {parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _set(headers: Any, name: str, value: str) -> None:
    """Instead of what is there: botocore's headers may have a name twice."""
    del headers[name]
    headers[name] = value


def _origin(url: str) -> tuple[str, str, int | None]:
    parts: SplitResult = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme.lower(), (parts.hostname or "").lower(), port or _PORTS.get(parts.scheme.lower())


def _require_botocore() -> None:
    try:
        import botocore  # noqa: F401
    except ModuleNotFoundError as error:
        raise _problem(
            _ENABLED,
            "requests to S3 are to be signed by a service, and Python's 'botocore' is missing; install it: "
            "pip install 'icestream[aws]'",
        ) from error


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])
