"""A REST catalog that signs for S3: it has the keys, and whoever reads and writes its tables has none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.http_proxy import Answer, PassOn, Request
from tests.integration.foreign.rest_logins import TokenGuard

_JSON = {"Content-Type": "application/json"}
KEY, SECRET = "keys-of-the-catalog", "s3cret/of+the=catalog"


class _AnyBody(S3SigV4Auth):
    """A service signs without the body, which it never sees."""

    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"


@dataclass
class SigningCatalog:
    """In front of a real catalog. Tables come without logins, and with the way to the service."""

    store: str
    """The address of S3 that clients are to use."""
    guard: TokenGuard = field(default_factory=TokenGuard)
    config: dict[str, str] = field(default_factory=lambda: {"s3.remote-signing-enabled": "true"})
    path: str = "v1/aws/s3/sign"
    asked: list[tuple[str, str]] = field(default_factory=list)
    delegations: set[str] = field(default_factory=set)
    refuses: bool = False

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        def inside(request: Request) -> Answer:
            if request.target == f"/{self.path}":
                return self._sign(json.loads(request.body))
            self.delegations.add(request.headers.get("x-iceberg-access-delegation", ""))
            plain = {k: v for k, v in request.headers.items() if k != "accept-encoding"}
            return self._without_logins(pass_on(replace(request, headers=plain)))

        return self.guard(request, inside)

    def _without_logins(self, answer: Answer) -> Answer:
        try:
            said = json.loads(answer.body)
        except ValueError:
            return answer
        if not isinstance(said, dict) or "metadata-location" not in said or "metadata" not in said:
            return answer
        said["config"] = {"s3.endpoint": self.store, "client.region": "us-east-1", **self.config}
        return Answer(answer.status, _JSON, json.dumps(said).encode())

    def _sign(self, asked: dict[str, Any]) -> Answer:
        self.asked.append((asked["method"], asked["uri"]))
        if self.refuses or not asked["uri"].startswith(f"{self.store}/warehouse"):
            return Answer(403, _JSON, b'{"error": {"message": "not yours", "code": 403}}')
        headers = {name: ",".join(values) for name, values in asked["headers"].items()}
        request = AWSRequest(asked["method"], asked["uri"], headers)
        _AnyBody(Credentials(KEY, SECRET), "s3", asked["region"]).add_auth(request)
        signed = {name: [value] for name, value in request.headers.items()}
        return Answer(200, _JSON, json.dumps({"uri": asked["uri"], "headers": signed}).encode())
