"""Signed requests, compared with what botocore signs; and what is not let in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from icestream.embedded.sigv4 import SignedLogin, Unsigned

LOGIN = SignedLogin("key", "s3cret/+", ("s3tables",))
HOST = "127.0.0.1:9010"
TARGETS = [
    "/_iceberg/v1/config?warehouse=kafkawarehouse",
    "/_iceberg/v1/namespaces/a%1Fb/tables/t%20x?snapshots=all&pageToken=&b=%2F~",
    "/_iceberg/v1/namespaces",
]
Headers = dict[str, str]


def signed(target: str, body: bytes, secret: str = LOGIN.secret_key, service: str = "s3tables") -> Headers:
    url = f"http://{HOST}{target}"
    request = AWSRequest("POST", url, data=body, headers={"Content-Type": "application/json"})
    SigV4Auth(Credentials("key", secret), service, "us-east-1").add_auth(request)
    return {"host": HOST, **{name.lower(): str(value) for name, value in request.headers.items()}}


def check(target: str, headers: Headers, body: bytes, now: datetime | None = None) -> None:
    LOGIN.check("POST", target, headers, body, now or datetime.now(UTC))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", [b"", b'{"name":"x"}'])
def test_what_botocore_signs_is_let_in(target: str, body: bytes) -> None:
    check(target, signed(target, body), body)


def another_body(headers: Headers) -> tuple[str, Headers, bytes]:
    return TARGETS[2], headers, b"other"


def another_path(headers: Headers) -> tuple[str, Headers, bytes]:
    return TARGETS[2] + "/x", headers, b"{}"


def another_host(headers: Headers) -> tuple[str, Headers, bytes]:
    return TARGETS[2], {**headers, "host": "evil:1"}, b"{}"


def no_signature(headers: Headers) -> tuple[str, Headers, bytes]:
    return TARGETS[2], {key: value for key, value in headers.items() if key != "authorization"}, b"{}"


def unsigned_host(headers: Headers) -> tuple[str, Headers, bytes]:
    given = headers["authorization"].replace("host;", "")
    return TARGETS[2], {**headers, "authorization": given}, b"{}"


def another_key(headers: Headers) -> tuple[str, Headers, bytes]:
    given = headers["authorization"].replace("Credential=key/", "Credential=other/")
    return TARGETS[2], {**headers, "authorization": given}, b"{}"


@pytest.mark.parametrize(
    "change", [another_body, another_path, another_host, no_signature, unsigned_host, another_key]
)
def test_what_was_changed_on_the_way_is_not_let_in(
    change: Callable[[Headers], tuple[str, Headers, bytes]],
) -> None:
    with pytest.raises(Unsigned):
        check(*change(signed(TARGETS[2], b"{}")))


def test_another_secret_another_service_and_another_time_are_told_apart() -> None:
    with pytest.raises(Unsigned, match="secret key"):
        check(TARGETS[2], signed(TARGETS[2], b"", secret="wrong"), b"")
    with pytest.raises(Unsigned, match="signed for the service 's3', not 's3tables'"):
        check(TARGETS[2], signed(TARGETS[2], b"", service="s3"), b"")
    with pytest.raises(Unsigned, match="clocks"):
        check(TARGETS[2], signed(TARGETS[2], b""), b"", datetime.now(UTC) + timedelta(hours=1))


def test_the_secret_is_not_shown() -> None:
    assert "s3cret" not in repr(LOGIN)
