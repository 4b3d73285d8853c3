"""Whether a request is signed by AWS's Signature Version 4 with the one login that is let in.

Asked by the front of the embedded REST catalog (`signed_front.py`), which takes only what is signed, as the
catalog in MinIO's own server does.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote_plus, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_HEADER: Final = re.compile(
    rf"{_ALGORITHM} Credential=(?P<key>[^/,\s]+)/(?P<scope>[0-9]{{8}}/[^/,\s]+/[^/,\s]+/aws4_request), ?"
    r"SignedHeaders=(?P<headers>[a-z0-9;._-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_OFF_S: Final = 900
"""How far the clocks of the two may be apart; AWS's own bound."""


class Unsigned(Exception):
    """Why a request is not let in; the text may be shown to whoever sent it."""


@dataclass(frozen=True)
class SignedLogin:
    """Who may come in, and for which services requests must be signed."""

    access_key: str
    secret_key: str = field(repr=False)
    services: tuple[str, ...]

    def check(self, method: str, target: str, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Raise Unsigned unless the request was signed with this login. Names of headers in small letters."""
        given = self.claim(headers, now)
        day, region, service, _ = given["scope"].split("/")
        moment = headers["x-amz-date"]
        _check_body(headers.get("x-amz-content-sha256"), body)
        names = given["headers"].split(";")
        if not {"host", "x-amz-date"} <= {*names} or any(name not in headers for name in names):
            raise Unsigned("host and x-amz-date must be signed, and every signed header must be there")
        canonical = _canonical(
            method, target, {name: headers[name] for name in names}, given["headers"], body
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join([_ALGORITHM, moment, given["scope"], digest])
        if not hmac.compare_digest(self._signature((day, region, service), text), given["signature"]):
            raise Unsigned("the signature does not fit the request and the secret key")

    def claim(self, headers: Mapping[str, str], now: datetime) -> re.Match[str]:
        """What the request says of itself, before its body is read: who, for what, and when."""
        given = _HEADER.fullmatch(headers.get("authorization", "").strip())
        if not given:
            raise Unsigned(f"the request has no Authorization header with {_ALGORITHM}")
        day, _, service, _ = given["scope"].split("/")
        if service not in self.services:
            raise Unsigned(f"the request is signed for the service '{service}', not '{self.services[0]}'")
        if not hmac.compare_digest(given["key"].encode(), self.access_key.encode()):
            raise Unsigned("the access key is not known here")
        _check_time(headers.get("x-amz-date", ""), day, now)
        return given

    def _signature(self, scope: tuple[str, ...], text: str) -> str:
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.digest(key, text.encode(), "sha256").hex()


def _check_time(moment: str, day: str, now: datetime) -> None:
    try:
        signed_at = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Unsigned("x-amz-date is missing or no time") from None
    if not moment.startswith(day) or abs((now - signed_at).total_seconds()) > _OFF_S:
        raise Unsigned("the request was signed at another time; compare the clocks")


def _check_body(claimed: str | None, body: bytes) -> None:
    """The hash is part of the signature anyway; a header that tells another one is a mistake to name."""
    digest = hashlib.sha256(body)
    # Java's client of Iceberg writes it in base64.
    if claimed not in (None, digest.hexdigest(), base64.b64encode(digest.digest()).decode()):
        raise Unsigned("x-amz-content-sha256 is not the hash of the body")


def _canonical(method: str, target: str, signed: Mapping[str, str], names: str, body: bytes) -> str:
    address = urlsplit(target)
    lines = [
        method,
        # Encoded twice, as every service but S3 wants it: the path as it came is encoded once.
        quote(address.path or "/", safe="/~"),
        _canonical_query(address.query),
        *(f"{name}:{' '.join(value.split())}" for name, value in sorted(signed.items())),
        "",
        names,
        hashlib.sha256(body).hexdigest(),
    ]
    return "\n".join(lines)


def _canonical_query(query: str) -> str:
    pairs = []
    for piece in filter(None, query.split("&")):
        key, _, value = piece.partition("=")
        pairs.append(tuple(quote(unquote_plus(text), safe="~") for text in (key, value)))
    return "&".join(f"{key}={value}" for key, value in sorted(pairs))
