"""Two workers from `CONNECT_*` variables alone, on https with users: either answers, asking the other."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from icestream.embedded.certificates import Certificates, certificates
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from tests.cluster.workers import WorkerProcess, cluster_properties, eventually

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"


def variables(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as the cp-kafka-connect images take them."""
    return {
        "CONNECT_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper(): value
        for key, value in properties.items()
    }


@pytest.fixture
def stores(tmp_path: Path) -> Certificates:
    return certificates(tmp_path / "stores", "hush-hush")


@pytest.fixture
def workers(
    broker: Broker, group: str, tmp_path: Path, stores: Certificates
) -> Iterator[tuple[WorkerProcess, WorkerProcess]]:
    users = tmp_path / "users.properties"
    users.write_text("alice=wonder land\n")
    (tmp_path / "jaas.conf").write_text(
        f'KafkaConnect {{ {EXTENSION}.PropertyFileLoginModule required file="{users}"; }};'
    )
    first = free_port()
    started = tuple(
        secured(tmp_path, cluster_properties(broker.bootstrap, group), port, stores)
        for port in (first, free_port(avoid=first))
    )
    for worker in started:
        worker.start()
    yield started[0], started[1]
    for worker in started:
        worker.stop()


def secured(folder: Path, cluster: Mapping[str, str], port: int, stores: Certificates) -> WorkerProcess:
    secure = {
        "listeners": f"https://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.extension.classes": f"{EXTENSION}.BasicAuthSecurityRestExtension",
        "listeners.https.ssl.keystore.location": str(stores.keystore),
        "listeners.https.ssl.keystore.type": "PKCS12",
        "listeners.https.ssl.keystore.password": stores.password,
        "listeners.https.ssl.truststore.location": str(stores.truststore_jks),
        "listeners.https.ssl.truststore.password": stores.password,
        "listeners.https.ssl.client.auth": "requested",
    }
    environment = {
        **variables({**cluster, **secure}),
        "KAFKA_OPTS": f"-Djava.security.auth.login.config={folder / 'jaas.conf'}",
    }
    command = [str(Path(sys.executable).with_name("icestream")), "distributed"]
    return WorkerProcess(f"secure-{port}", folder, lambda _: command, secure, environment)


def test_workers_pass_requests_on_over_https_with_the_user(
    workers: tuple[WorkerProcess, WorkerProcess], stores: Certificates, tmp_path: Path
) -> None:
    trusting = ssl.create_default_context(cafile=str(stores.truststore_pem))
    login = ("alice", "wonder land")
    urls = [worker.url for worker in workers]

    def logs() -> str:
        return "\n".join(worker.text() for worker in workers)

    with httpx.Client(verify=trusting, auth=login, trust_env=False, timeout=120) as client:
        for url in urls:
            eventually(lambda url=url: client.get(f"{url}/health").status_code == 200, logs)
        # One of the two leads; the other must ask it.
        for number, url in enumerate(urls):
            config = {"connector.class": "FileStreamSource", "topic": "t", "file": str(tmp_path / "none")}
            body = {"name": f"source-{number}", "config": config}
            eventually(
                lambda url=url, body=body: client.post(f"{url}/connectors", json=body).status_code == 201,
                logs,
            )
        for url in urls:
            eventually(lambda url=url: len(client.get(f"{url}/connectors").json()) == 2, logs)
    with httpx.Client(verify=trusting, trust_env=False, timeout=120) as nobody:
        assert [nobody.delete(f"{url}/connectors/source-0").status_code for url in urls] == [401, 401]
    assert "wonder" not in logs()
    assert stores.password not in logs()
