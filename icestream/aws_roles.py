"""Roles of AWS that a connector assumes, and the logins that come of it. Shared by the connectors.

boto3 is imported by whoever needs it: it is an extra.
"""

from __future__ import annotations

import datetime as dt
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.waits import waiting_for

SPARE: Final = dt.timedelta(minutes=10)
"""A login is replaced so long before its end: a batch that begins with it must be able to end with it."""
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class Keys:
    """Of an AWS user or session."""

    id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    until: dt.datetime | None = None


@dataclass(frozen=True)
class Role:
    """A role of AWS, and who assumes it."""

    arn: str
    session: str
    external_id: str | None
    seconds: int
    region: str | None
    keys: Keys | None


class AssumedLogin:
    """The login of one role, anew before it ends."""

    def __init__(
        self,
        assume: Callable[[], Keys],
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._assume = assume
        self._now = now
        self._keys: Keys | None = None
        self._lock = threading.Lock()

    def keys(self) -> Keys:
        with self._lock:
            held = self._keys
            if held is None or held.until is None or held.until < self._now() + SPARE:
                held = self._keys = self._assume()
            return held


@functools.lru_cache(maxsize=64)
def login_of(role: Role) -> AssumedLogin:
    return AssumedLogin(functools.partial(_assume, role))


def _assume(role: Role) -> Keys:
    import boto3
    import botocore.config

    own = role.keys
    session = boto3.Session(
        aws_access_key_id=own.id if own else None,
        aws_secret_access_key=own.secret if own else None,
        aws_session_token=own.token if own else None,
        region_name=role.region,
    )
    request: dict[str, Any] = {
        "RoleArn": role.arn,
        "RoleSessionName": role.session,
        "DurationSeconds": role.seconds,
    }
    if role.external_id:
        request["ExternalId"] = role.external_id
    with waiting_for(f"STS: role {role.arn}"):
        sts = session.client(
            "sts",
            config=botocore.config.Config(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_READ_SECONDS,
                retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
            ),
        )
        answer = sts.assume_role(**request)["Credentials"]
    return Keys(
        answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"], answer["Expiration"]
    )


def lasting(login: AssumedLogin) -> Any:
    from botocore.credentials import DeferredRefreshableCredentials

    def refreshed() -> dict[str, str]:
        keys = login.keys()
        until = keys.until or dt.datetime.now(dt.UTC) + dt.timedelta(minutes=15)
        return {
            "access_key": keys.id,
            "secret_key": keys.secret,
            "token": keys.token or "",
            "expiry_time": until.isoformat(),
        }

    return DeferredRefreshableCredentials(refresh_using=refreshed, method="sts-assume-role")
