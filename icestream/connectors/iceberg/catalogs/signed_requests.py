"""Requests to a REST catalog: each with a time limit, and signed for AWS (SigV4) where the config says so.

Used by `guarded_catalogs.py`. PyIceberg can sign, too, but without time limits, with the headers that proxies
change among the signed ones, and with an AttributeError for whoever has no login.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from icestream.api.errors import ConfigError, Problem
from icestream.aws_roles import Role
from icestream.connectors.iceberg.catalogs.aws_login import aws_session
from icestream.connectors.iceberg.catalogs.keys import PREFIX

_TIMEOUTS: Final = {
    "rest.client.connection-timeout-ms": 15_000,
    "rest.client.socket-timeout-ms": 60_000,
}
_LONGEST: Final = 600_000
"""Milliseconds for one answer: beyond them, nobody would know that a job hangs."""


class TimedAdapter(HTTPAdapter):
    """Gives every request a time limit: requests has none of its own."""

    def __init__(self, properties: Mapping[str, Any], **named: Any) -> None:
        super().__init__(**named)
        self._limits = tuple(
            _number(properties, key, milliseconds, 1, _LONGEST) / 1000
            for key, milliseconds in _TIMEOUTS.items()
        )

    def send(self, request: Any, *arguments: Any, **named: Any) -> Any:
        named["timeout"] = named.get("timeout") or self._limits
        return super().send(request, *arguments, **named)


class SigningAdapter(TimedAdapter):
    """Signs what it sends, as Java's `RESTSigV4Signer` does. Raises ConfigError if there is no login."""

    def __init__(self, properties: Mapping[str, Any], role: Role | None) -> None:
        super().__init__(properties, max_retries=_number(properties, "rest.sigv4.max-retries", 3, 0, 20))
        session = aws_session(properties, role, "rest", "client")
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise _missing(
                "rest.access-key-id",
                "it is missing, and so is iceberg.catalog.rest.secret-access-key: "
                "requests are to be signed (rest.sigv4-enabled) and the worker has no login to AWS either; "
                "set both",
            )
        self._region = properties.get("rest.signing-region") or session.region_name
        if not self._region:
            raise _missing("rest.signing-region", "it is missing: signed requests name a region; set it")
        self._service = properties.get("rest.signing-name") or "execute-api"
        self._has_token = bool(properties.get("token") or properties.get("credential"))

    def add_headers(self, request: PreparedRequest, **named: Any) -> None:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        body: Any = request.body or b""
        content: bytes = body.encode() if isinstance(body, str) else body
        # A retry comes by here again.
        for header in ("X-Amz-Date", "X-Amz-Security-Token"):
            request.headers.pop(header, None)
        own = str(request.headers.pop("Authorization", ""))
        if own and self._has_token and not own.startswith("AWS4-"):
            request.headers["Original-Authorization"] = own
        # Only what no proxy on the way changes.
        signed = {"x-amz-content-sha256": hashlib.sha256(content).hexdigest()}
        if kind := request.headers.get("Content-Type"):
            signed["Content-Type"] = str(kind)
        aws = AWSRequest(method=request.method, url=request.url, data=content, headers=signed)
        SigV4Auth(self._credentials.get_frozen_credentials(), self._service, self._region).add_auth(aws)
        request.headers.update(dict(aws.headers.items()))


def _number(properties: Mapping[str, Any], key: str, otherwise: int, least: int, most: int) -> int:
    given = str(properties.get(key) or otherwise).strip()
    if not re.fullmatch(r"[0-9]{1,9}", given) or not least <= int(given) <= most:
        raise _missing(key, f"'{given[:20]}' is no whole number from {least} to {most}; correct it")
    return int(given)


def _missing(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])
