"""Guards in front of a REST catalog or S3: they let in who signs (SigV4), or has a token of theirs.

The signature is recomputed here from AWS's description of it, with nothing of what the client signs with.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit

from tests.http_proxy import Answer, PassOn, Request

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([^,]+), Signature=([0-9a-f]{64})"
)
_ANY_BODY = "UNSIGNED-PAYLOAD"


def _refused(status: int, why: str) -> Answer:
    error = {"error": {"message": why, "type": "NotAuthorizedException", "code": status}}
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(error).encode())


@dataclass
class SignatureGuard:
    """Lets requests pass that are signed for its service and region with its keys."""

    key: str
    secret: str
    region: str
    service: str
    token: str | None = None
    passed: int = 0
    refused: list[str] = field(default_factory=list)

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        if why := self._problem(request):
            self.refused.append(why)
            return _refused(403, why)
        self.passed += 1
        return pass_on(request)

    def _problem(self, request: Request) -> str | None:
        found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if not found:
            return "no signature"
        key, day, region, service, names, signature = found.groups()
        if (key, region, service) != (self.key, self.region, self.service):
            return f"signed by {key} for {service} in {region}"
        if request.headers.get("x-amz-security-token") != self.token:
            return "another session"
        stamp = request.headers["x-amz-date"]
        signed_at = dt.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
        if abs(dt.datetime.now(dt.UTC) - signed_at) > dt.timedelta(minutes=15) or stamp[:8] != day:
            return "another time"
        digest = hashlib.sha256(request.body).hexdigest()
        if self.service == "s3" and request.headers.get("x-amz-content-sha256") == _ANY_BODY:
            digest = _ANY_BODY
        elif request.headers.get("x-amz-content-sha256", digest) != digest:
            return "another body"
        signed = names.split(";")
        if "host" not in signed or [name for name in request.headers if name.startswith("x-amz-")] != [
            name for name in request.headers if name.startswith("x-amz-") and name in signed
        ]:
            return "headers that are not signed"
        expected = self._signature(request, signed, stamp, digest)
        return None if hmac.compare_digest(expected, signature) else "another signature"

    def _signature(self, request: Request, signed: list[str], stamp: str, digest: str) -> str:
        parts = urlsplit(request.target)
        # Of all services but S3 itself the path is encoded once more than it is sent.
        path = parts.path if self.service == "s3" else quote(parts.path or "/", safe="/-_.~")
        pairs = sorted(
            (quote(k, safe="-_.~"), quote(v, safe="-_.~"))
            for k, v in parse_qsl(parts.query, keep_blank_values=True)
        )
        canonical = "\n".join(
            [
                request.verb,
                path,
                "&".join(f"{k}={v}" for k, v in pairs),
                *(f"{name}:{' '.join(request.headers[name].split())}" for name in signed),
                "",
                ";".join(signed),
                digest,
            ]
        )
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{self.secret}".encode()
        for part in (stamp[:8], self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, text.encode(), "sha256").hexdigest()


@dataclass
class TokenGuard:
    """Gives out tokens for a credential and a scope, and lets requests pass that have the newest one."""

    credential: str = "client:s3cret"
    scope: str = "lake"
    token: str = ""
    given_out: int = 0
    forms: list[Mapping[str, str]] = field(default_factory=list)

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        if request.target == "/realms/lake/token":
            return self._give(request)
        if not self.token or request.headers.get("authorization") != f"Bearer {self.token}":
            return _refused(401, "another token")
        return pass_on(request)

    def expire(self) -> None:
        self.token = f"expired-{uuid.uuid4()}"

    def _give(self, request: Request) -> Answer:
        form = dict(parse_qsl(request.body.decode()))
        self.forms.append(form)
        if f"{form.get('client_id')}:{form.get('client_secret')}" != self.credential:
            answer = {"error": "invalid_client", "error_description": "who is that"}
            return Answer(401, {"Content-Type": "application/json"}, json.dumps(answer).encode())
        if form.get("scope") != self.scope:
            answer = {"error": "invalid_scope", "error_description": "not yours"}
            return Answer(400, {"Content-Type": "application/json"}, json.dumps(answer).encode())
        self.token = str(uuid.uuid4())
        self.given_out += 1
        answer = {"access_token": self.token, "token_type": "bearer", "expires_in": "3600"}
        return Answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())


@dataclass
class PasswordGuard:
    user: str
    password: str

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        expected = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {expected}":
            return _refused(401, "who is that")
        return pass_on(request)
