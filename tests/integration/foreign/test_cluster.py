"""The same connector where one machine is not enough: a Spark cluster, an executor killed; Spark Connect.

The worker is the real command in a process of its own, so that its Spark session is of its own.
"""

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyspark
import pytest
from pyiceberg import types as ty
from pyiceberg.schema import Schema

from icestream.client import ConnectClient
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import kafka, ports
from icestream.embedded.process import Process, spawn

pytestmark = [pytest.mark.network, pytest.mark.slow]

Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]
SPARK_HOME = Path(pyspark.__file__).parent
TEXT = "some text that makes the record as long as records are " * 6
SCHEMA = Schema(
    ty.NestedField(1, "id", ty.LongType(), required=True), ty.NestedField(2, "text", ty.StringType())
)


@contextmanager
def running(command: list[str], log: Path) -> Iterator[Process]:
    process = spawn(command, output=log, die_with_parent=True)
    try:
        yield process
    finally:
        process.send(signal.SIGTERM)
        if not process.wait(30):
            process.send(signal.SIGKILL)


def wait_for(condition: Callable[[], Any], log: Callable[[], str], patience: float = 240) -> Any:
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, log()
        time.sleep(0.1)
    return found


def wait_for_port(port: int, process: Process, log: Path) -> None:
    wait_for(lambda: ports.is_listening(port) or not process.is_alive(), log.read_text)
    assert process.is_alive(), log.read_text()


@pytest.fixture
def spark_class(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SPARK_HOME", str(SPARK_HOME))
    monkeypatch.setenv("SPARK_LOCAL_IP", ports.HOST)
    monkeypatch.setenv("PYSPARK_PYTHON", str(Path(sys.prefix) / "bin" / "python"))
    return str(SPARK_HOME / "bin" / "spark-class")


@pytest.fixture
def cluster(spark_class: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A master and two workers with one core each."""
    monkeypatch.setenv("SPARK_DAEMON_MEMORY", "256m")
    log = tmp_path / "master.log"
    port = ports.free_port()
    master = ["org.apache.spark.deploy.master.Master", "--host", ports.HOST, "--port", str(port)]
    with running([spark_class, *master, "--webui-port", "0"], log) as process:
        wait_for_port(port, process, log)
        address = f"spark://{ports.HOST}:{port}"
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", ports.HOST, "--cores", "1"]
        worker += ["--memory", "1g", "--webui-port", "0", address, "--work-dir", str(tmp_path / "work")]
        with (
            running([spark_class, *worker], tmp_path / "worker-1.log"),
            running([spark_class, *worker], tmp_path / "worker-2.log"),
        ):
            yield address


@pytest.fixture
def connect_server(spark_class: str, tmp_path: Path) -> Iterator[str]:
    port = ports.free_port()
    command = [
        *(spark_class, "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"),
        *("--conf", f"spark.connect.grpc.binding.address={ports.HOST}"),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.ui.enabled=false", "--driver-memory", "1g"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
    ]
    log = tmp_path / "connect.log"
    with running(command, log) as process:
        wait_for_port(port, process, log)
        yield f"sc://{ports.HOST}:{port}"


class Worker:
    """`icestream standalone` with one connector."""

    def __init__(self, folder: Path, settings: Mapping[str, str], config: Mapping[str, str]) -> None:
        self.folder = folder
        self.name = config["name"]
        self.config = dict(config)
        port = ports.free_port(avoid=int(settings.get("spark.ui.port", 0)))
        self.url = f"http://{ports.HOST}:{port}"
        lines = {
            "listeners": self.url,
            "icestream.state.file": str(folder / "state.json"),
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            **settings,
        }
        (folder / "worker.properties").write_text("".join(f"{key}={lines[key]}\n" for key in lines))
        (folder / "connector.json").write_text(json.dumps({"name": self.name, "config": self.config}))

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [str(Path(sys.prefix) / "bin" / "python"), "-m", "icestream.cli.main", "standalone"]
        command += [str(self.folder / "worker.properties"), str(self.folder / "connector.json")]
        with running(command, self.folder / "standalone.log"):
            yield

    def log(self) -> str:
        return (self.folder / "standalone.log").read_text()[-6000:]

    def rows(self) -> int:
        """How many rows the connector has written; fails if the connector has."""
        if not ports.is_listening(int(self.url.rpartition(":")[2])):
            return 0
        with ConnectClient(self.url) as client:
            (view,) = client.overview()
        assert not any(task.state == "FAILED" for task in view.tasks), view
        return view.progress.rows if view.progress else 0

    def wait_for_rows(self, total: int) -> None:
        wait_for(lambda: self.rows() >= total, self.log, patience=240)

    def ids(self) -> Counter[int]:
        table = open_catalog(self.config).load_table(self.config["iceberg.tables"])
        return Counter(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


@pytest.fixture
def config(tmp_path: Path, s3: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    """A connector whose table is on S3, and that table."""
    name = request.node.name.replace("_", "-")[:40]
    settings = {
        "name": name,
        "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
        "topics": name,
        "tasks.max": "2",
        "iceberg.tables": "ns.events",
        "iceberg.control.commit.interval-ms": "1000",
        "iceberg.catalog": "demo",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"s3://warehouse/{name}",
        **s3,
    }
    catalog = open_catalog(settings)
    catalog.create_namespace("ns")
    catalog.create_table("ns.events", SCHEMA)
    return settings


def records(first: int, until: int) -> list[dict[str, Any]]:
    return [{"id": number, "text": TEXT} for number in range(first, until)]


class Executors:
    """What the driver's own web interface tells of its executors."""

    def __init__(self, port: int) -> None:
        self._url = f"http://{ports.HOST}:{port}/api/v1/applications"
        self._http = httpx.Client(trust_env=False, timeout=60)

    def all(self) -> list[dict[str, Any]]:
        """Those alive; none before Spark has started."""
        try:
            found = self._get("executors")
        except (httpx.HTTPError, ValueError):
            return []
        return [one for one in found if one["isActive"] and one["id"] != "driver"]

    def busy(self) -> list[str]:
        return [one["id"] for one in self.all() if one["activeTasks"]]

    def failed_tasks(self) -> int:
        return sum(stage["numFailedTasks"] for stage in self._get("stages"))

    def _get(self, what: str) -> list[dict[str, Any]]:
        (application,) = self._http.get(self._url).json()
        return list(self._http.get(f"{self._url}/{application['id']}/{what}").json())


def kill_executor(number: str) -> None:
    """kill -9 for an executor below the workers that this process started, and for its Python workers."""
    line: list[str] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may end while we look
            line = process.cmdline()
        if "--executor-id" in line and line[line.index("--executor-id") + 1] == number:
            for victim in [*process.children(recursive=True), process]:
                victim.kill()
            return
    pytest.fail(f"executor {number} is no process of ours")


def test_an_executor_is_killed_in_the_middle_of_a_batch_and_every_record_is_there_once(
    cluster: str, config: dict[str, str], broker: kafka.Broker, produce: Produce, tmp_path: Path
) -> None:
    ui = ports.free_port()
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "spark.master": cluster,
        "spark.driver.host": ports.HOST,
        "spark.executor.memory": "768m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
    }
    produce(config["topics"], records(0, 300))
    worker = Worker(tmp_path, settings, config)
    with worker.running():
        worker.wait_for_rows(300)
        executors = Executors(ui)
        # A batch may end before the kill comes: then another one is tried.
        for total in range(200_300, 1_000_301, 200_000):
            wait_for(lambda: len(executors.all()) == 2, worker.log)
            produce(config["topics"], records(total - 200_000, total))
            victim = executors.busy()
            while not victim and worker.rows() < total:
                victim = executors.busy()
            if victim:
                kill_executor(victim[0])
            worker.wait_for_rows(total)
            if executors.failed_tasks():
                break
        assert executors.failed_tasks(), "no kill hit a task"
        assert worker.ids() == Counter(range(total))
        produce(config["topics"], records(total, total + 300))
        wait_for(lambda: worker.rows() >= total + 300, worker.log)
    assert worker.ids() == Counter(range(total + 300))


def test_the_connector_runs_through_spark_connect(
    connect_server: str, config: dict[str, str], broker: kafka.Broker, produce: Produce, tmp_path: Path
) -> None:
    produce(config["topics"], records(0, 50_000))
    settings = {"bootstrap.servers": broker.bootstrap, "spark.remote": connect_server}
    worker = Worker(tmp_path, settings, config)
    with worker.running():
        wait_for(lambda: worker.rows() >= 50_000, worker.log, patience=240)
        with ConnectClient(worker.url) as client:
            client.pause(worker.name)
            produce(config["topics"], records(50_000, 50_300))
            time.sleep(2)
            assert worker.rows() == 50_000
            client.resume(worker.name)
        wait_for(lambda: worker.rows() >= 50_300, worker.log)
    assert worker.ids() == Counter(range(50_300))
