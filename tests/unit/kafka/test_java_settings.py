"""From Java's client settings to librdkafka's: every key, with real clients as the judges."""

import re
import subprocess

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from icestream.embedded import kafka
from icestream.embedded.java import java
from icestream.kafka.clients import client_settings, override_findings, quiet, worker_findings
from icestream.kafka.java_settings import checked, translated
from icestream.kafka.java_table import TABLE, Number, Switch, Text

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
TRANSACTIONAL = {"transactional.id": "t", "transaction.timeout.ms": 60_000}


def javas_defaults(client: str) -> dict[str, str]:
    """The keys of a Java client with their defaults, as its own documentation prints them."""
    command = [java(), "-cp", f"{kafka.jars()}/*", f"org.apache.kafka.clients.{client}Config"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for part in page.split('<h4><a id="')[1:]:
        default = re.search(r"Default:</th><td>(.*?)</td>", part, re.DOTALL)
        assert default
        # "300000 (5 minutes)", "class org…", and `""` for an empty text.
        plain = re.sub(r" \([\d.]+ [a-z]+\)$", "", default[1]).replace("class ", "").replace('""', "")
        found[part.partition('"')[0]] = plain.strip()
    return found


@pytest.mark.network
@pytest.mark.parametrize(
    ("client", "role"),
    [
        ("consumer.Consumer", "consumer"),
        ("producer.Producer", "producer"),
        ("admin.AdminClient", "admin"),
    ],
)
def test_every_key_of_java_has_a_rule_and_its_default_is_taken(client: str, role: str) -> None:
    defaults = javas_defaults(client)
    assert len(defaults) > 60
    assert defaults.keys() - TABLE.keys() == set()
    given = {key: value for key, value in defaults.items() if value not in ("", "null")}
    found = translated({**given, **NOWHERE}, role)
    assert found.problems == ()
    make(role, dict(found.settings))


def make(role: str, settings: dict[str, str]) -> None:
    """A real client with these settings; librdkafka refuses what it does not know or like."""
    if role == "consumer":
        Consumer(quiet({**settings, "group.id": "g"})).close()
    elif role == "producer":
        Producer(quiet({**settings, **TRANSACTIONAL}))
        Consumer(quiet({**settings, "group.id": "g"})).close()
    else:
        AdminClient(quiet(settings))


NUMBERS = sorted(key for key, rule in TABLE.items() if isinstance(rule, Number))


@pytest.mark.parametrize("role", ["consumer", "producer", "admin"])
@pytest.mark.parametrize("key", NUMBERS)
def test_librdkafka_takes_the_least_and_the_most_of_every_number(key: str, role: str) -> None:
    rule = TABLE[key]
    assert isinstance(rule, Number)
    least = rule.low if rule.java_low is None else rule.java_low
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    for value in (least, 2**31 - 1):
        settings = {**NOWHERE, **sasl, "sasl.password": "p", key: str(value)}
        # A message must have longer than it may linger, in Java as well.
        if key == "delivery.timeout.ms":
            settings["linger.ms"] = "0"
        found = translated(settings, role)
        assert found.problems == ()
        assert rule.to in found.settings
        make(role, dict(found.settings))


@pytest.mark.parametrize("key", sorted(key for key, rule in TABLE.items() if isinstance(rule, Switch)))
def test_librdkafka_takes_both_values_of_every_switch(key: str) -> None:
    for value in ("TRUE", "false"):
        settings = translated({**NOWHERE, key: value}, "consumer").settings
        make("consumer", dict(settings))


@pytest.mark.parametrize("key", sorted(key for key, rule in TABLE.items() if isinstance(rule, Text)))
def test_librdkafka_takes_every_choice(key: str) -> None:
    rule = TABLE[key]
    assert isinstance(rule, Text)
    for choice in rule.choices:
        found = translated({**NOWHERE, key: choice.upper()}, None)
        assert found.problems == ()
        assert found.settings[rule.to] == choice
        # The canonical lookup is for Kerberos only, and asks the name server at once.
        if choice != "resolve_canonical_bootstrap_servers_only":
            make("producer", dict(found.settings))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("buffer.memory", "33554432", {"queue.buffering.max.kbytes": "32768"}),
        ("buffer.memory", "1025", {"queue.buffering.max.kbytes": "2"}),
        ("fetch.max.wait.ms", "250", {"fetch.wait.max.ms": "250"}),
        ("max.partition.fetch.bytes", "2097152", {"fetch.message.max.bytes": "2097152"}),
        ("request.timeout.ms", "40000", {"socket.timeout.ms": "40000"}),
        ("metadata.max.age.ms", "60000", {"topic.metadata.refresh.interval.ms": "60000"}),
        ("connections.max.idle.ms", "-1", {"connections.max.idle.ms": "0"}),
        ("send.buffer.bytes", "-1", {"socket.send.buffer.bytes": "0"}),
        ("compression.type", "ZSTD", {"compression.codec": "zstd"}),
        ("delivery.timeout.ms", "30000", {"message.timeout.ms": "30000"}),
        ("partitioner.ignore.keys", "true", {"partitioner": "random"}),
        # librdkafka's own names are taken as they are.
        ("queued.min.messages", "500", {"queued.min.messages": "500"}),
        ("statistics.interval.ms", "1000", {"statistics.interval.ms": "1000"}),
    ],
)
def test_names_and_units_change(key: str, value: str, expected: dict[str, str]) -> None:
    found = translated({**NOWHERE, key: value}, None)
    assert found.settings == {**NOWHERE, **expected}
    assert found.warnings == ()


def test_keys_are_hashed_as_java_does() -> None:
    assert translated(NOWHERE, "producer").settings == {**NOWHERE, "partitioner": "murmur2_random"}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("isolation.level", "read_uncommitted", "has no effect: only committed records are read, always"),
        ("max.poll.records", "500", "has no effect: a batch decides how much is read"),
        ("acks", "1", "has no effect: records are always written by an idempotent or transactional"),
        ("interceptor.classes", "com.x.Y", "has no effect: interceptors are Java classes"),
        ("confluent.monitoring.thing", "1", "has no effect: it is not a setting of Kafka's clients"),
        ("delivery.timeout.ms", "120000", "has the effect of 60000, the nearest to 120000"),
        ("fetch.min.bytes", "0", "has the effect of 1, the nearest to 0 that is possible"),
    ],
)
def test_what_has_another_effect_is_told(key: str, value: str, told: str) -> None:
    found = checked({key: value}, "consumer.override.", {})
    (warning,) = found.warnings
    assert warning.message.startswith(f"'consumer.override.{key}' {told}")
    assert found.problems == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("isolation.level", "read_committed"),
        ("acks", "ALL"),
        ("enable.auto.commit", "false"),
        ("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"),
        ("metadata.recovery.strategy", "REBOOTSTRAP"),
    ],
)
def test_what_happens_anyway_needs_no_warning(key: str, value: str) -> None:
    assert checked({key: value}, "consumer.", {}).warnings == ()


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("fetch.min.bytes", "many", "Invalid value many for configuration {key}: Not a number of type INT"),
        ("fetch.min.bytes", "-1", "Invalid value -1 for configuration {key}: Value must be at least 0"),
        ("compression.type", "rar", "Invalid value rar for configuration {key}: String must be one of"),
        ("partitioner.class", "com.x.P", "'{key}' cannot be used here: it is a Java class; remove it"),
        ("fetch.min.byte", "1", "is not a setting of Kafka's clients; did you mean 'consumer.override.fetch"),
        ("statistics.interval.ms", "-5", "'{key}' has a value that Kafka's client refuses: "),
        ("bootstrap.servers", "host", "'{key}' has 'host', which is not an address; write host:port"),
        ("security.protocol", "TLS", "'{key}=TLS' is not a protocol; use one of PLAINTEXT, SSL"),
    ],
)
def test_what_cannot_be_translated_is_an_error_on_its_key(key: str, value: str, told: str) -> None:
    name = f"consumer.override.{key}"
    (problem,) = checked({key: value}, "consumer.override.", {}).problems
    assert problem.key == name
    assert told.format(key=name) in problem.message


def test_settings_of_tls_and_sasl_wait_until_the_protocol_asks_for_them() -> None:
    unused = {
        "ssl.keystore.location": "/not/there",
        "ssl.client.auth": "none",
        "sasl.jaas.config": "nonsense",
    }
    assert client_settings({**NOWHERE, **unused}) == NOWHERE
    assert checked({**NOWHERE, **unused}, "", {}).problems == ()


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384", True),
        ("TLS_AES_256_GCM_SHA384", False),
    ],
)
def test_cipher_suites_keep_their_names(suites: str, expected: bool) -> None:
    settings = {**NOWHERE, "security.protocol": "SSL", "ssl.cipher.suites": suites}
    found = translated(settings, "admin")
    assert ("ssl.cipher.suites" in found.settings) is expected
    assert bool(found.warnings) is not expected
    make("admin", dict(found.settings))


@pytest.mark.parametrize(
    ("key", "value", "is_refused", "warns"),
    [
        ("ssl.enabled.protocols", "TLSv1.2, TLSv1.3", False, False),
        ("ssl.enabled.protocols", "TLSv1.2,TLSv1.1,TLSv1", False, True),
        ("ssl.enabled.protocols", "TLSv1.1", True, False),
        ("ssl.protocol", "TLS", False, False),
        ("ssl.protocol", "TLSv1.2", False, False),
        ("ssl.protocol", "SSL", True, False),
    ],
)
def test_tls_versions(key: str, value: str, is_refused: bool, warns: bool) -> None:
    found = translated({**NOWHERE, "security.protocol": "SSL", key: value}, None)
    assert bool(found.problems) is is_refused
    assert bool(found.warnings) is warns


def test_a_problem_of_the_worker_is_not_told_again_of_the_connector() -> None:
    worker = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "broken",
        "consumer.max.poll.records": "5",
        "admin.listeners": "http://127.0.0.1:1",
    }
    found = worker_findings(worker)
    assert [problem.key for problem in found.problems] == ["sasl.jaas.config"]
    assert found.warnings == ("'consumer.max.poll.records' has no effect: a batch decides how much is read",)
    quietly = override_findings(worker, {"consumer.override.fetch.min.bytes": "5", "name": "x"})
    assert (quietly.problems, quietly.warnings) == ((), ())


def test_a_connectors_login_is_checked_with_the_workers_mechanism() -> None:
    worker = {
        **NOWHERE,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} username="a" password="b";',
    }
    good = {"consumer.override.sasl.jaas.config": f'{SCRAM} username="c" password="d";'}
    assert override_findings(worker, good).problems == ()
    bad = {"consumer.override.sasl.jaas.config": f'{SCRAM} username="c" secret="hidden-value";'}
    (problem,) = override_findings(worker, bad).problems
    assert problem.key == "consumer.override.sasl.jaas.config"
    assert problem.message == "'consumer.override.sasl.jaas.config' has no password; add password=\"…\""
