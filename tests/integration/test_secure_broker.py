"""Every way to Kafka, through TLS and SASL/SCRAM, with the settings that Java's clients take."""

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from icestream.api.batch import Slice
from icestream.api.errors import ConfigError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.cli.main import run
from icestream.embedded import ports
from icestream.embedded.certificates import Certificates, certificates
from icestream.embedded.java import java
from icestream.embedded.kafka import SecureBroker
from icestream.kafka import topics as topics_module
from icestream.kafka import transactions as transactions_module
from icestream.kafka.clients import client_settings
from icestream.kafka.keystores import identity
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

pytestmark = [pytest.mark.slow, pytest.mark.network]

WRONG = "not-the-password"


def truststore(broker: SecureBroker, kind: str) -> dict[str, str]:
    stores = broker.certificates
    if kind == "inline PEM":
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": stores.truststore_pem.read_text(),
        }
    file = {
        "PKCS12": stores.truststore_pkcs12,
        "JKS": stores.truststore_jks,
        "PEM": stores.truststore_pem,
    }[kind]
    password = {} if kind == "PEM" else {"ssl.truststore.password": stores.password}
    return {"ssl.truststore.type": kind, "ssl.truststore.location": str(file), **password}


def without_truststore(settings: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if not key.startswith("ssl.truststore.")}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate that the broker does not know, and that is not the broker's."""
    return certificates(tmp_path_factory.mktemp("stranger"), "changeit")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives up early on a broker of which we know that it will not let us in."""
    for module in (topics_module, transactions_module):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 3.0)


@pytest.fixture(scope="module")
def topic(secure_settings: dict[str, str]) -> str:
    Topics(client_settings(secure_settings, "admin")).create("secrets", 1, 1)
    producer = Transactions(client_settings(secure_settings, "producer"), "secure-test", "secure-group")
    producer.write(
        [Outgoing("secrets", b"key", b"value")], Offsets({Partition("secrets", 0): 1}), "a note beside it"
    )
    producer.close()
    return "secrets"


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "PEM", "inline PEM"])
def test_a_topic_is_read_with_each_kind_of_trust_store(
    secure_broker: SecureBroker, secure_settings: dict[str, str], topic: str, kind: str
) -> None:
    worker = {**without_truststore(secure_settings), **truststore(secure_broker, kind)}
    topics = Topics(client_settings(worker, "admin"))
    partition = Partition(topic, 0)
    assert topics.group_offsets("secure-group", [partition])[partition].note == "a note beside it"
    end = topics.ends([partition])[partition]
    reader = SliceReader(client_settings(worker, "consumer"))
    try:
        read = [value for chunk in reader.read(Slice(partition, 0, end), 10) for value in chunk.values()]
    finally:
        reader.close()
    assert read == [b"value"]


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives every client a token without a signature, and remembers who asked."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append(f"{self.headers['Authorization']} {body}")
        now = int(time.time())
        claims = {"sub": "alice", "iat": now, "exp": now + 3600}
        token = ".".join([*(_base64(part) for part in ({"alg": "none"}, claims)), ""])
        answer = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def _base64(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    TokenEndpoint.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


LOGINS = "org.apache.kafka.common.security"


@pytest.mark.parametrize(
    ("mechanism", "login"),
    [
        ("PLAIN", f'{LOGINS}.plain.PlainLoginModule required username="alice" password="alice-secret";'),
        (
            "OAUTHBEARER",
            f'{LOGINS}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";',
        ),
    ],
)
def test_other_logins(secure_settings: dict[str, str], topic: str, mechanism: str, login: str) -> None:
    worker = {**secure_settings, "sasl.mechanism": mechanism, "sasl.jaas.config": login}
    assert topic in Topics(client_settings(worker, "admin")).names()
    Transactions(client_settings(worker, "producer"), f"login-{mechanism}", "any").close()


def test_a_token_comes_from_the_endpoint(
    secure_settings: dict[str, str], topic: str, token_endpoint: str, impatient: None
) -> None:
    worker = {
        **secure_settings,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{LOGINS}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": token_endpoint,
        "sasl.jaas.config": (
            f"{LOGINS}.oauthbearer.OAuthBearerLoginModule required "
            'clientId="me" clientSecret="s3" scope="read";'
        ),
    }
    assert topic in Topics(client_settings(worker)).names()
    credentials = base64.b64encode(b"me:s3").decode()
    assert set(TokenEndpoint.asked) == {f"Basic {credentials} grant_type=client_credentials&scope=read"}
    # An endpoint that is away may come back: that is an outage, not a wrong config.
    away = {**worker, "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{ports.free_port()}/"}
    with pytest.raises(SourceUnavailable, match="listing topics: Failed to acquire SASL OAUTHBEARER token"):
        Topics(client_settings(away)).names()


def test_a_wrong_password_is_one_sentence_for_every_client(
    secure_settings: dict[str, str], topic: str, impatient: None
) -> None:
    worker = {
        **secure_settings,
        "sasl.jaas.config": secure_settings["sasl.jaas.config"].replace("alice-secret", WRONG),
    }
    refused = r"Kafka refuses the login; check sasl\.jaas\.config and sasl\.mechanism"
    with pytest.raises(ConfigError, match=f"listing topics: {refused}") as caught:
        Topics(client_settings(worker, "admin")).names()
    assert caught.value.problems[0].key == "sasl.jaas.config"
    assert WRONG not in str(caught.value)
    with pytest.raises(ConfigError, match=f"transaction of t: {refused}"):
        Transactions(client_settings(worker, "producer"), "t", "g")
    reader = SliceReader(client_settings(worker, "consumer"))
    try:
        with pytest.raises(ConfigError, match=f"reading secrets-0: {refused}"):
            list(reader.read(Slice(Partition(topic, 0), 0, 1), 10))
    finally:
        reader.close()


def test_a_certificate_of_somebody_else_is_not_trusted(
    secure_settings: dict[str, str], stranger: Certificates, impatient: None
) -> None:
    worker = {
        **secure_settings,
        "ssl.truststore.location": str(stranger.truststore_pkcs12),
        "ssl.truststore.password": stranger.password,
    }
    with pytest.raises(ConfigError, match=r"the broker's certificate is not trusted; check ssl\.truststore"):
        Topics(client_settings(worker)).names()


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "PEM"])
def test_a_client_shows_its_own_certificate(
    secure_broker: SecureBroker,
    secure_settings: dict[str, str],
    stranger: Certificates,
    tmp_path: Path,
    kind: str,
    impatient: None,
) -> None:
    trusted = key_store(secure_broker.certificates, tmp_path / "trusted", kind)
    assert Topics(client_settings({**secure_settings, **trusted})).cluster_id()
    foreign = key_store(stranger, tmp_path / "foreign", kind)
    with pytest.raises(SourceUnavailable, match=r"asking for the cluster id: .*SSL"):
        Topics(client_settings({**secure_settings, **foreign})).cluster_id()


def key_store(stores: Certificates, file: Path, kind: str) -> dict[str, str]:
    """A key store of the client in the wanted format, with the certificate of `stores`."""
    own = {"ssl.keystore.location": str(stores.keystore), "ssl.keystore.password": stores.password}
    if kind == "PKCS12":
        return own
    if kind == "PEM":
        found = identity(own)
        assert found
        file.write_text(found.key_pem + found.certificates_pem)
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    program = Path(java()).with_name("keytool")
    subprocess.run(
        [
            *(str(program), "-importkeystore", "-noprompt", "-deststoretype", "JKS"),
            *("-srckeystore", str(stores.keystore), "-srcstorepass", stores.password),
            *("-destkeystore", str(file), "-deststorepass", stores.password),
        ],
        check=True,
        capture_output=True,
    )
    return {"ssl.keystore.location": str(file), "ssl.keystore.password": stores.password}


def test_the_name_of_the_broker_is_compared_unless_that_is_turned_off(
    secure_broker: SecureBroker, secure_settings: dict[str, str], impatient: None
) -> None:
    by_name = {**secure_settings, "bootstrap.servers": f"localhost:{secure_broker.port}"}
    with pytest.raises(ConfigError, match=r"certificate is not trusted; .* the host names in bootstrap"):
        Topics(client_settings(by_name)).cluster_id()
    not_compared = {**by_name, "ssl.endpoint.identification.algorithm": ""}
    assert Topics(client_settings(not_compared)).cluster_id()


def test_a_plain_client_at_a_secure_door_is_told_so(secure_broker: SecureBroker, impatient: None) -> None:
    with pytest.raises(SourceUnavailable, match=r"listing topics: .*security\.protocol"):
        Topics(client_settings({"bootstrap.servers": secure_broker.bootstrap})).names()


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("alice-secret", "Table 'ns.t' is not in catalog"),
        (WRONG, "asking for the cluster id: Kafka refuses the login"),
    ],
)
def test_verify_takes_the_way_to_kafka_from_the_workers_file(
    secure_settings: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    impatient: None,
    password: str,
    told: str,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", password)
    worker = {
        **secure_settings,
        "sasl.jaas.config": secure_settings["sasl.jaas.config"].replace(
            "alice-secret", "${env:KAFKA_PASSWORD}"
        ),
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    connector = {
        "connector.class": "IcebergSinkConnector",
        "topics": "secrets",
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
    }
    for name, config in (("worker", worker), ("connector", {"name": "c", **connector})):
        (tmp_path / f"{name}.properties").write_text("".join(f"{key}={config[key]}\n" for key in config))
    files = [
        "--worker",
        str(tmp_path / "worker.properties"),
        "--config",
        str(tmp_path / "connector.properties"),
    ]
    assert run(["verify", "c", *files]) == 1
    assert told in capsys.readouterr().err
