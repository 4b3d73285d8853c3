"""The image of deploy/image does its work: read-only root, own user, variables of a pod."""

from __future__ import annotations

import os
import socket
import stat
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from icestream.embedded.kafka import Broker
from icestream.embedded.ports import HOST, free_port
from tests.conftest import Produce
from tests.image.container import PATIENCE, Image, run, running
from tests.image.iceberg_rows import rows_of, sink_config, until_healthy, worker_variables

# What comes first may have to build the image.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def test_a_worker_from_variables_lands_records_and_ends_in_order_when_told(
    image: Image, broker: Broker, produce: Produce, s3: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "catalog.db").touch()
    for each in (tmp_path, tmp_path / "catalog.db"):
        os.chown(each, 185, 0)
    topic = f"image-{uuid.uuid4().hex[:8]}"
    produce(topic, [{"id": number, "name": f"row {number}"} for number in range(300)])
    port = free_port()
    url = f"http://{HOST}:{port}"
    catalog = {"iceberg.catalog.warehouse": f"s3://warehouse/{topic}", **s3}
    config = sink_config(topic, "jdbc:sqlite:/mnt/catalog.db", catalog)
    # As the manifests of those who come from Confluent's image start it.
    start = ["/etc/confluent/docker/run"]
    with running(
        image,
        [],
        command=start,
        env=worker_variables(broker, port),
        data=tmp_path,
        log=tmp_path.parent / f"{topic}.log",
    ) as container:
        until_healthy(container, url)
        answer = httpx.put(f"{url}/connectors/rows/config", json=config, timeout=120)
        assert answer.status_code == 201, answer.text
        outside = {**config, "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
        deadline = time.monotonic() + PATIENCE
        while rows_of(outside) < 300:
            status = httpx.get(f"{url}/connectors/rows/status", timeout=60).text
            assert "FAILED" not in status, status
            assert time.monotonic() < deadline, container.output()
            time.sleep(0.3)
        assert rows_of(outside) == 300
        # All of it is the image's user, and nobody else.
        processes = psutil.Process(container.pid).children(recursive=True)
        assert len(processes) >= 3
        assert {each.uids().real for each in processes} == {185}
        container.terminate()
        assert container.ended() in (0, 143), container.output()
        assert "worker stopped" in container.output()


def test_every_part_has_its_entry_point(image: Image, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code, said = run(image, "--version", log=log)
    assert code == 0 and "icestream" in said
    code, said = run(image, "job-manager", log=log)
    # It begins, and asks for its variables.
    assert code != 0 and "KAFKA_BOOTSTRAP_SERVERS" in said
    code, said = run(image, "standalone", "--help", log=log)
    assert code == 0 and "WORKER.properties" in said
    code, said = run(image, "--help", log=log, command=["/usr/bin/connect-distributed"])
    assert code == 0 and "WORKER.properties" in said
    code, said = run(image, "worker", log=log)
    assert code != 0 and "bootstrap.servers" in said
    code, said = run(image, "executor", log=log)
    assert code != 0 and "SPARK_DRIVER_URL" in said


def test_an_executor_is_started_with_the_variables_of_its_pod(image: Image, tmp_path: Path) -> None:
    """By Spark's own class: it asks the driver that it was told of, and nobody answers here."""
    port = free_port()
    with socket.create_server((HOST, port)) as driver:
        env = {
            "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@{HOST}:{port}",
            "SPARK_EXECUTOR_ID": "1",
            "SPARK_EXECUTOR_CORES": "1",
            "SPARK_EXECUTOR_MEMORY": "256m",
            "SPARK_APPLICATION_ID": "app",
            "SPARK_EXECUTOR_POD_IP": HOST,
            "SPARK_EXECUTOR_POD_NAME": "exec-1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_JAVA_OPT_0": "-Dfirst=with two words",
            "SPARK_JAVA_OPT_1": "-Dsecond=$(id);`id`'\"",
        }
        with running(image, ["executor"], env=env, log=tmp_path / "log") as container:
            driver.settimeout(PATIENCE)
            asked, _ = driver.accept()
            asked.close()
            (java,) = [
                each
                for each in psutil.Process(container.pid).children(recursive=True)
                if each.name() == "java"
            ]
            arguments = java.cmdline()
    assert arguments[1:3] == ["-Dfirst=with two words", "-Dsecond=$(id);`id`'\""]
    assert "-Xmx256m" in arguments and "--podName" in arguments


def test_the_image_says_who_it_is_and_runs_as_nobody_special(image: Image) -> None:
    config: Any = image.config
    assert config["User"] == "185:0"
    assert config["Labels"]["org.opencontainers.image.title"] == "icestream"
    assert {"8083/tcp", "7078/tcp"} <= config["ExposedPorts"].keys()
    passwd = (image.root / "etc" / "passwd").read_text()
    assert "icestream:x:185:0:" in passwd
    # Nothing that gives rights to who runs it, but what Debian's base has; none of them in ours.
    ours = [each for each in (image.root / "opt").rglob("*") if each.is_file() and not each.is_symlink()]
    assert not [each for each in ours if each.stat().st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH)]
    # The jars of upserts are among Spark's own; no cache and no installer is left.
    jars = {each.name for each in ours if each.suffix == ".jar"}
    assert {each.partition("-1.")[0] for each in jars} >= {
        "iceberg-spark-runtime-4.1_2.13",
        "iceberg-aws-bundle",
    }
    assert not any(each.parent.name == "pip" for each in ours)
    assert not list((image.root / "tmp").iterdir()) and not (image.root / "root" / ".cache").exists()
