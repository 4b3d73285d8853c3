"""What a connector may override of Kafka's clients, and what it does not inherit when it goes elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.kafka.clients import client_settings, override_findings, worker_findings
from icestream.kafka.connector_keys import NATIVE
from icestream.kafka.librdkafka import UNKNOWN, complaint

LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="w" password="s3cret";'
WORKER = {
    "bootstrap.servers": "kafka-1:9092, kafka-2:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": LOGIN,
    "consumer.sasl.jaas.config": LOGIN,
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("plugin.library.paths", "/tmp/attack.so"),
        ("ssl.engine.location", "/tmp/attack.so"),
        ("ssl.providers", "attack"),
        ("ssl.key.location", "/etc/shadow"),
        ("sasl.oauthbearer.assertion.file", "/etc/shadow"),
        ("metadata.broker.list", "elsewhere:9092"),
        ("enable.partition.eof", "false"),
        ("error_cb", "x"),
    ],
)
def test_what_runs_code_or_reads_files_is_the_workers_alone(key: str, value: str) -> None:
    for prefix in ("consumer.override.", "producer.override.", "admin.override.", "own.kafka."):
        (problem,) = override_findings(WORKER, {f"{prefix}{key}": value}, {"own.kafka.": "producer"}).problems
        assert problem.key == f"{prefix}{key}"
        assert "not among the settings that a connector may override" in problem.message
    with pytest.raises(ConfigError, match="may override"):
        client_settings(WORKER, "consumer", {key: value})


def test_java_s_kinit_is_no_command_here() -> None:
    key = "sasl.kerberos.kinit.cmd"
    assert override_findings(WORKER, {f"consumer.override.{key}": "touch /tmp/x"}).warnings
    assert key not in client_settings(WORKER, "consumer", {key: "touch /tmp/x"})


def test_a_library_is_not_even_looked_for(tmp_path: Path) -> None:
    """Setting it is loading it: librdkafka must not be asked what it thinks of the value."""
    key = "consumer.override.plugin.library.paths"
    (problem,) = override_findings(WORKER, {key: f"{tmp_path}/no-such-library"}).problems
    assert "Plugin" not in problem.message
    assert "may override" in problem.message


def test_the_owner_of_a_worker_may_use_all_that_librdkafka_has() -> None:
    worker = {"bootstrap.servers": "kafka:9092", "consumer.enable.partition.eof": "true"}
    assert worker_findings(worker).problems == ()
    assert client_settings(worker, "consumer")["enable.partition.eof"] == "true"


def test_what_is_allowed_exists() -> None:
    assert [key for key in NATIVE if (complaint(key, "") or "").startswith(UNKNOWN)] == []


@pytest.mark.parametrize("name", ["x; touch /tmp/attacked", "$(touch x)", '"', "a b"])
def test_a_kerberos_name_is_no_command(name: str) -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule required"
    quoted = name.replace('"', '\\"')
    override = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f'{module} principal="{quoted}";',
    }
    with pytest.raises(ConfigError, match="Kerberos name"):
        client_settings({}, "consumer", override)


@pytest.mark.parametrize("role", ["consumer", "producer", "admin"])
def test_who_changes_the_address_brings_the_login(role: str) -> None:
    settings = client_settings(WORKER, role, {"bootstrap.servers": "elsewhere:9092"})
    assert settings["bootstrap.servers"] == "elsewhere:9092"
    assert "s3cret" not in str(settings)
    assert "security.protocol" not in settings


def test_who_changes_the_token_endpoint_brings_the_login() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    worker = {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        "sasl.jaas.config": f'{module} clientId="w" clientSecret="s3cret";',
    }
    assert "s3cret" in str(client_settings(worker, "consumer"))
    endpoint = "sasl.oauthbearer.token.endpoint.url"
    assert "s3cret" not in str(client_settings(worker, "consumer", {endpoint: "http://elsewhere"}))
    both = {endpoint: "http://elsewhere", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(ConfigError) as caught:
        client_settings(worker, "consumer", both)
    assert "s3cret" not in str(caught.value)


def test_the_workers_own_address_in_other_words_keeps_its_login() -> None:
    again = {"bootstrap.servers": "KAFKA-2:9092,kafka-1:9092"}
    assert client_settings(WORKER, "consumer", again)["sasl.password"] == "s3cret"
    brought = {key: WORKER[key] for key in ("security.protocol", "sasl.mechanism", "sasl.jaas.config")}
    elsewhere = client_settings(WORKER, "admin", {**brought, "bootstrap.servers": "e:1"})
    assert elsewhere["sasl.username"] == "w"
