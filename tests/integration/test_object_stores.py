"""Object stores: who we are to them, in Iceberg's and in Hadoop's words, and their bad days.

Against moto always, and against MinIO where the environment's `MINIO` is its program.
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.fs as pf
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField

from icestream.api.config import subset
from icestream.api.status import State
from icestream.connectors.iceberg.catalogs.opening import catalog_properties, open_catalog
from icestream.embedded import ports
from icestream.embedded.kafka import Broker
from icestream.jobs.probes import probe_connector
from tests.behaviours.test_sinks import BUCKETS, Subject, iceberg_subject
from tests.catalog_examples import example
from tests.http_proxy import Answer, PassOn, Request, proxy
from tests.integration.s3_faults import Faults
from tests.kit.programs import skip_without
from tests.running import RunningConnector, StartConnector

Config = dict[str, str]
Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]
Drained = Callable[..., None]


class Recorder:
    """Keeps what comes by."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        self.requests.append(request)
        return pass_on(request)

    def headers(self, name: str) -> set[str]:
        return {request.headers.get(name, "") for request in self.requests}

    def keys(self) -> set[str]:
        """The access keys that signed."""
        return {one.split("Credential=")[-1].split("/")[0] for one in self.headers("authorization")}


def subject(catalog: Config, store: Mapping[str, str]) -> Subject:
    namespace = f"ns_{uuid.uuid4().hex[:8]}"
    config = {
        **catalog,
        **store,
        "iceberg.tables": f"{namespace}.t",
        "iceberg.catalog.warehouse": f"s3://warehouse/{namespace}",
    }
    return iceberg_subject(config, namespace, BUCKETS, list)


def works(catalog: Config, store: Mapping[str, str]) -> None:
    made = subject(catalog, store)
    first = made.commit(0, 10, None)
    made.commit(10, 20, first)
    assert made.visible() == list(range(20))


# -- logins --


def test_keys_and_a_session_in_icebergs_words(sqlite_catalog: Config, s3: Config) -> None:
    recorder = Recorder()
    with proxy(s3["iceberg.catalog.s3.endpoint"], recorder) as address:
        session = {"iceberg.catalog.s3.endpoint": address, "iceberg.catalog.s3.session-token": "a-session"}
        works(sqlite_catalog, {**s3, **session})
    assert recorder.keys() == {"some-key"}
    assert recorder.headers("x-amz-security-token") == {"a-session"}
    # The bucket is in the path, as s3.path-style-access says.
    assert {request.target.split("/")[1].split("?")[0] for request in recorder.requests} == {"warehouse"}


@pytest.mark.parametrize("from_files", [False, True])
def test_the_same_in_hadoops_words(
    from_files: bool, sqlite_catalog: Config, s3: Config, broker: Broker, tmp_path: Path
) -> None:
    recorder = Recorder()
    with proxy(s3["iceberg.catalog.s3.endpoint"], recorder) as address:
        store = example(
            "Hadoop's words",
            hadoop_fs_s3a_endpoint=address.removeprefix("http://"),
            hadoop_fs_s3a_access_key="hadoops-key",
            hadoop_fs_s3a_secret_key="hadoops-secret",
        )
        if from_files:
            inner = "".join(
                f"<property><name>{key}</name><value>{value}</value></property>"
                for key, value in subset(store, "iceberg.hadoop.").items()
            )
            (tmp_path / "core-site.xml").write_text(f"<configuration>{inner}</configuration>")
            store = {"iceberg.hadoop-conf-dir": str(tmp_path)}
        works(sqlite_catalog, store)
        assert recorder.keys() == {"hadoops-key"}
        checked = {
            **sqlite_catalog,
            **store,
            "name": "checked",
            "connector.class": "IcebergSink",
            "topics": "t",
            "iceberg.tables": "no.where",
            "iceberg.catalog.warehouse": "s3://nobodys-bucket/x",
        }
        problems = probe_connector(checked, {"bootstrap.servers": broker.bootstrap})
        assert [problem.key for problem in problems] == ["iceberg.tables", "iceberg.catalog.warehouse"]


def test_a_role_is_assumed(sqlite_catalog: Config, s3: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3["iceberg.catalog.s3.endpoint"])
    recorder = Recorder()
    role = example("An assumed role")
    with proxy(s3["iceberg.catalog.s3.endpoint"], recorder) as address:
        works(sqlite_catalog, {**s3, **role, "iceberg.catalog.s3.endpoint": address})
    (key,) = recorder.keys()
    assert key.startswith("ASIA")
    assert "" not in recorder.headers("x-amz-security-token")


# -- MinIO --


@pytest.fixture
def minio(tmp_path: Path) -> Iterator[Config]:
    program = os.environ.get("MINIO")
    if not program:
        skip_without("MinIO", "go install github.com/minio/minio@latest, then set MINIO to its program")
    with _running_minio(program, tmp_path) as store:
        yield store


@contextmanager
def _running_minio(program: str, folder: Path) -> Iterator[Config]:
    (folder / "minio" / "warehouse").mkdir(parents=True)
    port = ports.free_port()
    login = {"MINIO_ROOT_USER": "minio-user", "MINIO_ROOT_PASSWORD": "minio-s3cret/+"}
    environment = {**login, "HOME": str(folder)}
    command = [program, "server", "--quiet", "--address", f"{ports.HOST}:{port}", str(folder / "minio")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not ports.is_listening(port):
            assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield {
            "iceberg.catalog.s3.endpoint": f"http://{ports.HOST}:{port}",
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.s3.access-key-id": "minio-user",
            "iceberg.catalog.s3.secret-access-key": "minio-s3cret/+",
            "iceberg.catalog.client.region": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait(60)


def test_minio_takes_and_gives_back(minio: Config, sqlite_catalog: Config) -> None:
    works(sqlite_catalog, minio)


def test_minio_refuses_a_wrong_secret_on_its_key(
    minio: Config, sqlite_catalog: Config, broker: Broker
) -> None:
    config = {
        **sqlite_catalog,
        **minio,
        "name": "checked",
        "connector.class": "IcebergSink",
        "topics": "t",
        "iceberg.tables": "no.where",
        "iceberg.catalog.warehouse": "s3://warehouse/x",
        "iceberg.catalog.s3.secret-access-key": "wrong",
    }
    open_catalog(config)
    problems = probe_connector(config, {"bootstrap.servers": broker.bootstrap})
    assert "iceberg.catalog.s3.secret-access-key" in [problem.key for problem in problems]


# -- bad days --

BAD_DAY: Mapping[str, float] = {
    "500": 0.04,
    "503 SlowDown": 0.10,
    "reset before": 0.03,
    "reset after": 0.03,
    "slow": 0.03,
}
"""More than a client of S3 forgives by itself."""


@pytest.mark.parametrize(
    ("records", "seed"),
    [(3_000, 1), *(pytest.param(60_000, seed, marks=pytest.mark.long) for seed in range(2, 6))],
)
def test_nothing_is_lost_or_doubled_by_an_object_store_with_bad_days(
    records: int,
    seed: int,
    sqlite_catalog: Config,
    s3: Config,
    produce: Produce,
    start_job: StartConnector,
    drained: Drained,
) -> None:
    name = f"bad-days-{uuid.uuid4().hex[:8]}"
    place = f"warehouse/{name}"
    healthy = {**sqlite_catalog, **s3, "iceberg.catalog.warehouse": f"s3://{place}"}
    table = made_table(healthy)
    produce(name, [{"id": number} for number in range(records)])
    faults = Faults(BAD_DAY, seed)
    with proxy(s3["iceberg.catalog.s3.endpoint"], faults) as address:
        job = start_job(
            name,
            {
                **healthy,
                "name": name,
                "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
                "topics": name,
                "tasks.max": "2",
                "iceberg.tables": "ns.t",
                "iceberg.catalog.s3.endpoint": address,
                "iceberg.control.commit.interval-ms": "500",
                "icestream.commit.rows": str(records // 6),
            },
            paused=False,
        )
        outlast(job, table, records)
        job.stop()
    assert all(faults.met[kind] > 0 for kind in BAD_DAY), faults.met
    found = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert Counter(found) == Counter(range(records))
    refuse_dangling(table, healthy, place)


def made_table(config: Config) -> Any:
    catalog = open_catalog(config)
    catalog.create_namespace("ns")
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "b"))
    return catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType())), partition_spec=spec)


def outlast(job: RunningConnector, table: Any, rows: int, patience: float = 600) -> None:
    """Until the table has all rows; a store that comes and goes is no reason for the job to fail."""
    deadline = time.monotonic() + patience
    while True:
        status = job.status()
        assert status.state is not State.FAILED, status.trace
        snapshot = table.refresh().current_snapshot()
        if snapshot is not None and int(snapshot.summary["total-records"]) >= rows:
            return
        assert time.monotonic() < deadline, status
        time.sleep(0.2)


def refuse_dangling(table: Any, config: Config, place: str) -> None:
    """Whatever any snapshot names is there, and no data file is named twice."""
    store = PyArrowFileIO(catalog_properties(config)).fs_by_scheme("s3", "warehouse")
    there = {f"s3://{info.path}" for info in store.get_file_info(pf.FileSelector(place, recursive=True))}
    for snapshot in table.metadata.snapshots:
        assert snapshot.manifest_list in there
        manifests = snapshot.manifests(table.io)
        assert {manifest.manifest_path for manifest in manifests} <= there
        files = [
            entry.data_file.file_path
            for manifest in manifests
            for entry in manifest.fetch_manifest_entry(table.io)
        ]
        assert set(files) <= there and len(files) == len(set(files))
