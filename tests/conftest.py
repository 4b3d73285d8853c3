"""What is started once for a run: Kafka, Spark, a Schema Registry, S3; and how processes share the run.

With `-n 3` each of the three processes has its own of these, so names need to be unique only within one. A
test that kills, stops or configures a broker or a worker has one of its own. Fixtures import what they start:
most tests need none of it.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, settings

from icestream.api.status import State
from icestream.embedded import ports
from icestream.embedded.kafka import Broker, running_broker
from icestream.embedded.topics import ensure_topic
from tests import long_form
from tests.spark_settings import with_iceberg
from tests.tally import Tally
from tests.work_units import work_unit

if TYPE_CHECKING:
    from icestream.pipeline.spark_runner import SparkPlane
    from tests.databases import Server
    from tests.running import RunningConnector, StartConnector

pytest_plugins = ("tests.kit.collection", "tests.kit.config_keys", "tests.kit.run_report")

Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]

pytest_plugins = ["tests.kit.leaks", "tests.kit.order"]

SECRET = "s3cret/and+odd@signs"
TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    long_form.ask(config)
    # How long an example takes is a matter of who else uses the machine.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
    # Every JVM of a test lives for a minute or two: one that compiles less takes a third less CPU.
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(3600))


# -- several processes --


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by file, and files that share something costly together, in the order of `kit.order`."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWorkUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return work_unit(nodeid)

    config.option.loadscopereorder = False
    return ByWorkUnit(config, log)


@pytest.fixture(autouse=True)
def logs_end_with_their_test() -> Iterator[None]:
    """A command that a test runs in this process sends its logs to that test's stderr, and a worker sets
    the levels of loggers: neither is another test's business."""
    _remove_handlers(lambda handler: bool(getattr(handler.stream, "closed", False)))
    before, levels = logging.getLogger().handlers[:], {it: it.level for it in _loggers()}
    yield
    _remove_handlers(lambda handler: handler not in before)
    for logger in _loggers():
        logger.setLevel(levels.get(logger, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    known = list(logging.Logger.manager.loggerDict.values())
    return [logging.getLogger(), *(it for it in known if isinstance(it, logging.Logger))]


def _remove_handlers(are_over: Callable[[logging.StreamHandler[Any]], bool]) -> None:
    from tests.kit.leaks import is_of_pytest

    root = logging.getLogger()
    for handler in root.handlers[:]:
        is_own = isinstance(handler, logging.StreamHandler) and not is_of_pytest(handler)
        if is_own and are_over(handler):
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    """What was compared with the real thing, and how often it agreed; told at the end of the run."""
    return request.config.stash.setdefault(TALLY, Tally())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tally"] = session.config.stash.get(TALLY, Tally()).packed()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # A process that crashed has told nothing.
    told = getattr(node, "workeroutput", {}).get("tally", {})
    node.config.stash.setdefault(TALLY, Tally()).merge(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(TALLY, Tally()).lines():
        terminalreporter.write_line(line)


# -- what tests share --


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy connectors of `tests/toys`, installed here and in processes that the test starts."""
    from icestream.plugins import installed
    from tests.toys.packages import installed_toys, python_path

    paths = installed_toys(tmp_path / "toys")
    monkeypatch.setenv("PYTHONPATH", python_path(paths))
    for path in paths:
        monkeypatch.syspath_prepend(path)
    installed.cache_clear()
    yield
    installed.cache_clear()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Kafka for all tests that only use it."""
    with running_broker(tmp_path_factory.mktemp("kafka"), ports.free_port()) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> SparkPlane:
    """The Spark session of this process."""
    from icestream.pipeline.spark_runner import SparkPlane

    return SparkPlane(with_iceberg())


@pytest.fixture(scope="session")
def start_job(broker: Broker, spark: SparkPlane) -> StartConnector:
    """Starts jobs in this process, on its Spark session; values are JSON without schemas."""
    from tests.running import connector_starter

    start = connector_starter({"bootstrap.servers": broker.bootstrap, **with_iceberg()}, spark)

    def start_plain_json(name: str, config: Mapping[str, str], *, paused: bool) -> RunningConnector:
        return start(name, {**config, "value.converter.schemas.enable": "false"}, paused=paused)

    return start_plain_json


@pytest.fixture
def sqlite_catalog(tmp_path: Path) -> dict[str, str]:
    return {
        # Its own name: a Spark session opens a catalog once, and this one serves many tests.
        "iceberg.catalog": f"demo_{uuid.uuid4().hex[:8]}",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
    }


@pytest.fixture(scope="session")
def produce(broker: Broker) -> Produce:
    """Write records as JSON to a topic of 3 partitions, in turn."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )

    def write(topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        ensure_topic(broker.bootstrap, topic)
        for number, record in enumerate(records):
            producer.produce(topic, json.dumps(record).encode(), partition=number % 3)
            producer.poll(0)
        assert producer.flush(120) == 0

    return write


@pytest.fixture
def drained() -> Callable[[RunningConnector, int], None]:
    """Wait until a job has written so many rows since its first batch."""

    def wait(job: RunningConnector, rows: int, patience: float = 180) -> None:
        deadline = time.monotonic() + patience
        while (status := job.status()).progress.rows < rows:
            assert status.state is not State.FAILED, status.trace
            assert time.monotonic() < deadline, status
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Schema Registry."""
    from tests.integration.registry import running_registry

    with running_registry(tmp_path_factory.mktemp("registry")) as url:
        yield url


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    from tests.databases import running_postgresql

    with running_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Where it is installed."""
    from tests import databases

    with databases.running_mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server with the bucket `warehouse`: the catalog settings that lead to it."""
    import boto3
    from moto.server import ThreadedMotoServer

    port = ports.free_port()
    server = ThreadedMotoServer(ip_address=ports.HOST, port=port, verbose=False)
    server.start()
    endpoint = f"http://{ports.HOST}:{port}"
    keys = {"aws_access_key_id": "some-key", "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="warehouse")
    yield {
        "iceberg.catalog.s3.endpoint": endpoint,
        "iceberg.catalog.s3.path-style-access": "true",
        "iceberg.catalog.s3.access-key-id": "some-key",
        "iceberg.catalog.s3.secret-access-key": SECRET,
        "iceberg.catalog.client.region": "us-east-1",
    }
    server.stop()
