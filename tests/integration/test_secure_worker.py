"""A worker whose Kafka wants TLS and SCRAM, with its secrets in files: group, topics, Spark, all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from icestream.cli.verify import holds
from icestream.embedded.kafka import SecureBroker
from icestream.kafka.clients import client_settings, quiet
from tests.cluster.workers import WorkerProcess, call, cluster_properties, eventually, ours
from tests.crashes.pipeline import Pipeline, record
from tests.spark_settings import SPARK

pytestmark = [pytest.mark.slow, pytest.mark.network]

FILE_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
RECORDS = 300


@pytest.fixture
def secrets(tmp_path: Path, secure_broker: SecureBroker) -> Path:
    file = tmp_path / "secrets.properties"
    file.write_text(
        f"kafka={secure_broker.login.password}\nstore={secure_broker.certificates.password}\n"
        f"warehouse=file://{tmp_path}/1/warehouse\n"
    )
    return file


@pytest.fixture
def worker(
    tmp_path: Path, secure_broker: SecureBroker, secure_settings: dict[str, str], secrets: Path
) -> Iterator[WorkerProcess]:
    properties = {
        **cluster_properties(secure_broker.bootstrap, "secure-cluster"),
        **secure_settings,
        **SPARK,
        "config.providers": "file",
        "config.providers.file.class": FILE_PROVIDER,
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{secure_broker.login.user}" password="${{file:{secrets}:kafka}}";',
        "ssl.truststore.password": f"${{file:{secrets}:store}}",
        **{
            f"{role}.{key}": value
            for role in ("producer", "consumer")
            for key, value in secure_settings.items()
            if key != "bootstrap.servers"
        },
    }
    running = ours("secure", tmp_path, properties)
    running.start()
    yield running
    running.stop()


def test_records_reach_the_table_and_no_secret_is_told(
    worker: WorkerProcess,
    secure_broker: SecureBroker,
    secure_settings: dict[str, str],
    secrets: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "1").mkdir()
    pipeline = Pipeline(secure_broker.plain.bootstrap, tmp_path / "1", "secure-lines").create()
    producer = Producer(quiet(client_settings(secure_settings, "producer")))
    for number in range(RECORDS):
        pipeline.send(producer, number, record(number))
        pipeline.sent[number] += 1
    assert producer.flush(30) == 0
    eventually(worker.is_ready, worker.text)
    placeholder = f"${{file:{secrets}:warehouse}}"
    config = {**pipeline.config, "iceberg.catalog.warehouse": placeholder}
    call(worker.url, "POST", "/connectors", {"name": pipeline.name, "config": config})
    eventually(
        lambda: pipeline.ids() == pipeline.sent,
        lambda: json.dumps(call(worker.url, "GET", f"/connectors/{pipeline.name}/status")) + worker.text(),
    )
    assert holds(pipeline.name, pipeline.config, secure_settings, deep=True)
    told = json.dumps(call(worker.url, "GET", "/connectors?expand=info&expand=status&expand=progress"))
    assert placeholder in told
    assert f"{tmp_path}/1/warehouse" not in told
    for secret in (secure_broker.login.password, secure_broker.certificates.password):
        assert secret not in worker.log.read_text()


def test_a_wrong_secret_is_one_sentence(
    worker: WorkerProcess, secrets: Path, secure_broker: SecureBroker
) -> None:
    eventually(worker.is_ready, worker.text)
    path = "/connector-plugins/FileStreamSink/config/validate"
    config = {
        "name": "x",
        "connector.class": "FileStreamSink",
        "topics": "t",
        "tasks.max": f"${{file:{secrets}:kafka}}",
        "file": f"${{file:{secrets}:nothing}}",
    }
    shown = json.dumps(call(worker.url, "PUT", path, config, expect=(200, 400)))
    assert "nothing" in shown
    assert secure_broker.login.password not in shown
