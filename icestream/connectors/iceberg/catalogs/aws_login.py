"""Who a connector is to AWS: keys of its own, a role that it assumes, or the worker's own login.

Used by `lent_login.py` for object stores, and by the clients of `aws_catalogs.py` and `signed_requests.py`.
Roles are assumed by us (`aws_roles`) and not by Arrow, because Arrow takes no role together with keys.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Final

from icestream.api.errors import ConfigError, Problem
from icestream.aws_roles import SPARE, Keys, Role, lasting, login_of
from icestream.connectors.iceberg.catalogs.keys import PREFIX, SESSION_EXPIRES

_ROLE: Final = "client.assume-role."
_ROLE_REGIONS: Final = (f"{_ROLE}region", "client.region", "s3.region")
_MOMENT: Final = re.compile(r"[0-9]{1,15}")
"""In milliseconds, as a server tells it."""
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60


def role_of(properties: Mapping[str, str]) -> Role | None:
    """The role that a connector's catalog settings name, if they name one."""
    arn = properties.get(f"{_ROLE}arn")
    if not arn:
        return None
    seconds = properties.get(f"{_ROLE}timeout-sec") or "3600"
    if not re.fullmatch(r"[0-9]{3,5}", seconds) or not 900 <= int(seconds) <= 43_200:
        raise _problem(f"{_ROLE}timeout-sec", f"'{seconds[:20]}' is no number from 900 to 43200")
    return Role(
        arn,
        properties.get(f"{_ROLE}session-name") or "icestream",
        properties.get(f"{_ROLE}external-id") or None,
        int(seconds),
        next((properties[key] for key in _ROLE_REGIONS if properties.get(key)), None),
        given_keys(properties, "s3", "client"),
    )


def given_keys(properties: Mapping[str, str], *families: str) -> Keys | None:
    """The keys of the first family (such as `glue`, `client`) that has any; half a login is an error."""
    for family in families:
        id_, secret = (properties.get(f"{family}.{key}") for key in ("access-key-id", "secret-access-key"))
        if id_ and secret:
            return Keys(id_, secret, properties.get(f"{family}.session-token") or None)
        if id_ or secret:
            missing = "secret-access-key" if id_ else "access-key-id"
            raise _problem(f"{family}.{missing}", "it is missing, and the other half of the login is there")
    return None


def assumed(properties: Mapping[str, str], role: Role | None) -> dict[str, str]:
    """The settings with the login of the role, if there is one."""
    if role is None:
        return dict(properties)
    keys = login_of(role).keys()
    lent = {"s3.access-key-id": keys.id, "s3.secret-access-key": keys.secret}
    if keys.token:
        lent["s3.session-token"] = keys.token
    if keys.until:
        lent[SESSION_EXPIRES] = str(int(keys.until.timestamp() * 1000))
    if role.region:
        lent["s3.region"] = role.region
    return {**properties, **lent}


def runs_out(properties: Mapping[str, Any], now: dt.datetime) -> bool:
    """Whether a login that was lent is at its end, or near it. One that does not tell never is."""
    until = str(properties.get(SESSION_EXPIRES) or "")
    return bool(_MOMENT.fullmatch(until)) and int(until) / 1000 < (now + SPARE).timestamp()


def aws_session(properties: Mapping[str, str], role: Role | None, *families: str) -> Any:
    """A session of boto3 with the first login there is: the role's, the families' keys, the worker's own."""
    boto3 = _boto3()
    region = next((found for one in families if (found := properties.get(f"{one}.region"))), None)
    region = (role.region if role else None) or region or properties.get("s3.region")
    if role is not None:
        import botocore.session

        session = botocore.session.get_session()
        session._credentials = lasting(login_of(role))
        return boto3.Session(botocore_session=session, region_name=region)
    keys = given_keys(properties, *families)
    if keys is None:
        return boto3.Session(region_name=region)
    return boto3.Session(
        aws_access_key_id=keys.id,
        aws_secret_access_key=keys.secret,
        aws_session_token=keys.token,
        region_name=region,
    )


def aws_client(session: Any, service: str, endpoint: str | None, attempts: int = 5) -> Any:
    """A client with time limits. Raises ConfigError if there is no region, or nobody to be."""
    import botocore.config

    if session.get_credentials() is None:
        raise _problem(
            "client.access-key-id",
            f"it is missing, and so is {PREFIX}client.secret-access-key: the worker has no login to AWS "
            "either; set both",
        )
    if not session.region_name:
        raise _problem("client.region", "the region is missing; set it")
    return session.client(
        service,
        endpoint_url=endpoint,
        config=botocore.config.Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"max_attempts": attempts, "mode": "standard"},
        ),
    )


def _boto3() -> Any:
    import boto3

    return boto3


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])
