"""Who a connector is to AWS, how long, and whose words decide it."""

from __future__ import annotations

import datetime as dt

import pytest

from icestream.api.errors import ConfigError
from icestream.aws_roles import AssumedLogin, Keys, Role
from icestream.connectors.iceberg.catalogs.aws_login import given_keys, role_of, runs_out
from icestream.connectors.iceberg.catalogs.keys import catalog_settings, servers_settings, storage_properties
from icestream.connectors.iceberg.settings import problems

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ARN = "arn:aws:iam::123456789012:role/lake"


def test_half_a_login_names_the_half_that_is_missing() -> None:
    for given, missing in (("access-key-id", "secret-access-key"), ("secret-access-key", "access-key-id")):
        with pytest.raises(ConfigError, match=rf"iceberg\.catalog\.glue\.{missing}: it is missing"):
            given_keys({f"glue.{given}": "x"}, "glue", "client")
    whole = {"client.access-key-id": "a", "client.secret-access-key": "b", "client.session-token": "c"}
    assert given_keys(whole, "glue", "client") == Keys("a", "b", "c")
    assert given_keys({}, "glue", "client") is None
    assert "b" not in repr(given_keys(whole, "client")).replace("botocore", "")


def test_a_role_in_javas_words() -> None:
    role = role_of(
        {
            "client.assume-role.arn": ARN,
            "client.assume-role.region": "eu-west-1",
            "client.assume-role.external-id": "x",
            "client.assume-role.session-name": "s",
            "client.assume-role.timeout-sec": "900",
        }
    )
    assert role == Role(ARN, "s", "x", 900, "eu-west-1", None)
    assert role_of({}) is None
    with pytest.raises(ConfigError, match="timeout-sec: '5'"):
        role_of({"client.assume-role.arn": ARN, "client.assume-role.timeout-sec": "5"})


def test_a_login_that_was_lent_is_replaced_before_it_ends() -> None:
    now = [NOON]
    lent: list[Keys] = []

    def assume() -> Keys:
        lent.append(Keys(f"key-{len(lent)}", "secret", "token", now[0] + dt.timedelta(hours=1)))
        return lent[-1]

    login = AssumedLogin(assume, lambda: now[0])
    assert login.keys().id == login.keys().id == "key-0"
    now[0] += dt.timedelta(minutes=49)
    assert login.keys().id == "key-0"
    now[0] += dt.timedelta(minutes=2)
    assert login.keys().id == "key-1"


def test_vended_credentials_tell_when_they_end() -> None:
    at = str(int((NOON + dt.timedelta(hours=1)).timestamp() * 1000))
    vended = storage_properties({"s3.session-token-expires-at-ms": at})
    assert not runs_out(vended, NOON)
    assert runs_out(vended, NOON + dt.timedelta(minutes=51))
    assert not runs_out({}, NOON)
    assert not runs_out({"s3.session-token-expires-at-ms": "soon"}, NOON)


def test_a_server_chooses_neither_role_nor_login() -> None:
    given = catalog_settings("rest", {"uri": "http://a", "rest.access-key-id": "mine"})
    hostile = {
        "uri": "http://a",
        "client.assume-role.arn": ARN,
        "rest.access-key-id": "theirs",
        "rest.secret-access-key": "theirs",
        "s3.region": "there",
    }
    taken, strange = servers_settings("rest", {**given, **hostile}, given)
    assert taken == {"uri": "http://a", "s3.region": "there", "rest.access-key-id": "mine"}
    assert strange == ["client.assume-role.arn", "rest.secret-access-key"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"client.region": "x.evil.com/#"}, "client.region"),
        ({"rest.signing-region": "a b"}, "rest.signing-region"),
        ({"client.factory": "attack.Run"}, "client.factory"),
        ({"client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"}, "client.assume-role.arn"),
        ({"client.credentials-provider": "attack.Run"}, "client.credentials-provider"),
        ({"io-impl": "attack.Run"}, "io-impl"),
        (
            {"s3.remote-signing-enabled": "true", "rest.sigv4-enabled": "true"},
            "s3.remote-signing-enabled",
        ),
        (
            {"type": "hive", "uri": "thrift://a:1", "s3.remote-signing-enabled": "true"},
            "s3.remote-signing-enabled",
        ),
        ({"s3.signer.endpoint": "http://elsewhere/sign"}, "s3.signer.endpoint"),
        ({"adls.connection-string": "BlobEndpoint=http://inner;AccountKey=s3cret"}, "adls.connection-string"),
    ],
)
def test_values_that_lead_elsewhere_are_refused_on_their_key(settings: dict[str, str], key: str) -> None:
    config = {"iceberg.tables": "ns.t", "iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://a"}
    config |= {f"iceberg.catalog.{name}": value for name, value in settings.items()}
    (problem,) = problems(config)
    assert problem.key == f"iceberg.catalog.{key}"
    assert "s3cret" not in problem.message
