"""Who we are to a REST catalog: SigV4, OAuth2, a token, a password. At Iceberg's own, behind a guard."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.embedded.kafka import Broker
from icestream.jobs.probes import probe_connector
from tests.behaviours.test_sinks import BUCKETS, Subject, iceberg_subject
from tests.catalog_examples import example
from tests.http_proxy import proxy
from tests.integration.foreign.rest_logins import PasswordGuard, SignatureGuard, TokenGuard

pytestmark = pytest.mark.network

Config = dict[str, str]
ON_PAGE = {
    key: value
    for key, value in example(
        "Signed requests (SigV4)", rest_access__key__id="signer", rest_secret__access__key="s3cret/+"
    ).items()
    if ".rest." in key
}
KEYS = {key: value for key, value in ON_PAGE.items() if key.endswith(("access-key-id", "access-key"))}
SEED_002 = {key: value for key, value in ON_PAGE.items() if key not in KEYS}


@pytest.fixture(autouse=True)
def no_login_of_the_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.fixture
def config(rest: Config) -> Config:
    return {
        **rest,
        "name": "logins",
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "t",
        "iceberg.catalog": f"rest_{uuid.uuid4().hex[:8]}",
        "iceberg.tables": f"logins_{uuid.uuid4().hex[:8]}.t",
    }


def subject(config: Config, address: str, login: Mapping[str, str]) -> Subject:
    given = {**config, **login, "iceberg.catalog.uri": address}
    return iceberg_subject(given, given["iceberg.tables"].partition(".")[0], BUCKETS, list)


def works(config: Config, address: str, login: Mapping[str, str]) -> Subject:
    """A table is made, and gets two commits."""
    made = subject(config, address, login)
    first = made.commit(0, 10, None)
    made.commit(10, 20, first)
    assert made.visible() == list(range(20))
    return made


def probed(config: Config, broker: Broker, address: str, login: Mapping[str, str]) -> dict[str, str]:
    given = {**config, **login, "iceberg.catalog.uri": address}
    found = probe_connector(given, {"bootstrap.servers": broker.bootstrap})
    return {problem.key.removeprefix("iceberg.catalog."): problem.message for problem in found}


# -- SigV4 --


@pytest.mark.parametrize("session", [None, "a/session+token"])
def test_every_request_is_signed_as_seed_002_has_it(
    config: Config, broker: Broker, session: str | None
) -> None:
    guard = SignatureGuard("signer", "s3cret/+", "us-east-1", "s3tables", session)
    login = {**SEED_002, **KEYS}
    if session:
        login["iceberg.catalog.rest.session-token"] = session
    with proxy(config["iceberg.catalog.uri"], guard) as address:
        works(config, address, login)
        assert probed(config, broker, address, login) == {}
        assert guard.passed > 5 and guard.refused == []
        wrong = {**login, "iceberg.catalog.rest.secret-access-key": "other"}
        assert "HTTP 403" in probed(config, broker, address, wrong)["uri"]
        assert guard.refused == ["another signature"]


def test_the_workers_own_login_signs_when_the_config_has_none(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "signer")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret/+")
    guard = SignatureGuard("signer", "s3cret/+", "us-east-1", "s3tables")
    with proxy(config["iceberg.catalog.uri"], guard) as address:
        open_catalog({**config, **SEED_002, "iceberg.catalog.uri": address}).close()
    assert (guard.passed, guard.refused) == (1, [])


def test_a_login_that_is_missing_is_named(config: Config, broker: Broker) -> None:
    guard = SignatureGuard("signer", "s3cret/+", "us-east-1", "s3tables")
    with proxy(config["iceberg.catalog.uri"], guard) as address:
        assert probed(config, broker, address, SEED_002) == {
            "rest.access-key-id": (
                "iceberg.catalog.rest.access-key-id: it is missing, and so is "
                "iceberg.catalog.rest.secret-access-key: requests are to be signed (rest.sigv4-enabled) and "
                "the worker has no login to AWS either; set both."
            )
        }
        half = {**SEED_002, "iceberg.catalog.rest.access-key-id": "signer"}
        assert list(probed(config, broker, address, half)) == ["rest.secret-access-key"]
        nowhere = {**SEED_002, **KEYS}
        del nowhere["iceberg.catalog.rest.signing-region"], config["iceberg.catalog.client.region"]
        assert list(probed(config, broker, address, nowhere)) == ["rest.signing-region"]
    assert guard.refused == []


# -- OAuth2, tokens, passwords --


@pytest.mark.parametrize("relative", [True, False])
def test_a_credential_buys_tokens_and_a_new_one_when_they_end(
    config: Config, broker: Broker, relative: bool
) -> None:
    guard = TokenGuard()
    with proxy(config["iceberg.catalog.uri"], guard) as address:
        token = f"{'' if relative else address}/realms/lake/token"
        login = example("REST", credential=guard.credential, scope=guard.scope, oauth2__server__uri=token)
        # That server knows no warehouses.
        del login["iceberg.catalog.warehouse"]
        made = works(config, address, login)
        before = guard.given_out
        guard.expire()
        assert made.visible() == list(range(20))
        assert guard.given_out == before + 1
        assert probed(config, broker, address, login) == {}
        wrong = {**login, "iceberg.catalog.credential": "client:wr0ng"}
        found = probed(config, broker, address, wrong)
        assert list(found) == ["credential"]
        assert "wr0ng" not in str(found) and "who is that" not in str(found)
    assert guard.forms[0] == {
        "grant_type": "client_credentials",
        "client_id": "client",
        "client_secret": "s3cret",
        "scope": "lake",
    }


def test_a_token_is_sent_as_it_is(config: Config, broker: Broker) -> None:
    guard = TokenGuard(token="a-bearer's")
    with proxy(config["iceberg.catalog.uri"], guard) as address:
        login = {"iceberg.catalog.token": "a-bearer's"}
        works(config, address, login)
        assert probed(config, broker, address, login) == {}
        assert list(probed(config, broker, address, {"iceberg.catalog.token": "0ther"})) == ["token"]
        assert list(probed(config, broker, address, {})) == ["uri"]


def test_a_user_and_a_password(config: Config) -> None:
    with proxy(config["iceberg.catalog.uri"], PasswordGuard("me", "pass:word")) as address:
        login = {
            "iceberg.catalog.rest.auth.type": "basic",
            "iceberg.catalog.rest.auth.basic.username": "me",
            "iceberg.catalog.rest.auth.basic.password": "pass:word",
        }
        works(config, address, login)
    with pytest.raises(ConfigError, match="'kerberos' is not known"):
        open_catalog({**config, "iceberg.catalog.rest.auth.type": "kerberos"})


# -- what the server lends --


def test_files_are_written_with_the_login_that_the_server_lends(config: Config) -> None:
    for key in ("access-key-id", "secret-access-key"):
        config.pop(f"iceberg.catalog.s3.{key}")
    made = works(config, config["iceberg.catalog.uri"], {})
    sink = IcebergPlugin().open("job", {**config})
    (target,) = sink.targets()
    lent = target.plan({}).io_properties
    assert (lent["s3.access-key-id"], bool(lent["s3.secret-access-key"])) == ("some-key", True)
    assert made.visible() == list(range(20))
