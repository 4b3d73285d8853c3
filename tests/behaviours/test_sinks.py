"""What every sink must do: Iceberg and Delta, plain and partitioned, the file, S3, the toy of `tests/toys`.

A new sink joins the list with a config, and with a way to read what it has made visible.
"""

from __future__ import annotations

import importlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.fs as pf
import pytest
from deltalake import DeltaTable
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after, checkpoint_moved
from icestream.api.config import Config
from icestream.api.errors import CommitConflict
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import Commit, Sink, SinkWriter, Target, TargetTask, WriterTask
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.connectors.delta.storage import Storage
from icestream.connectors.file.plugin import FileSinkPlugin
from icestream.connectors.iceberg.catalogs.opening import catalog_properties, open_catalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.jdbc.connections import access_from, connection_to
from icestream.connectors.jdbc.dialects.base import execute, rows_of
from icestream.connectors.jdbc.sink.plugin import JdbcSinkPlugin
from icestream.connectors.jdbc.sink.table import stage_prefix
from icestream.connectors.s3.plugin import S3SinkPlugin
from icestream.connectors.s3.stores.opening import open_store
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk

IDS = TopicIds("cluster", {SOURCE.topic: "id"})
OTHER = Partition("another", 3)
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))
DELTA_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
BUCKETS = PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "id_bucket"))


@dataclass
class Subject:
    """A sink, as the jobs of several processes open it."""

    open: Callable[[str], Sink]
    visible: Callable[[], list[int]]
    """The ids of all rows that a reader sees, in order."""
    leftovers: Callable[[], list[Path]]
    """Files that hold rows, visible or not."""
    config: Config = field(default_factory=dict)
    """By which a job opens the same, where that is not the same for all."""

    def target(self, job: str = "job") -> Target:
        (target,) = self.open(job).targets()
        return target

    def stage(
        self, start: int, until: int, *, has_until: int = 0, stages: bool = True, job: str = "job"
    ) -> tuple[Any, Staged]:
        """The plan, and what one task stages of records with the ids `start` to `until`; each is good."""
        sink = self.open(job)
        (target,) = sink.targets()
        plan = target.plan({})
        task = TargetTask(target.name, plan, Offsets({SOURCE: has_until}))
        writer = sink.writer(WriterTask([task], f"batch-{start}", stages))
        self.write(writer, start, until)
        return plan, writer.close()[target.name]

    def write(self, writer: SinkWriter, start: int, until: int) -> None:
        values = [json.dumps({"id": number, "text": f"t{number}"}).encode() for number in range(start, until)]
        records = record_path_from(RecordSettings.of(CONFIG)).prepare(chunk(values, start)).records
        written = writer.write(records, RowOrigins.of_one(SOURCE, np.arange(start, until)))
        assert not written.failed

    def commit(self, start: int, until: int, before: Checkpoint | None, job: str = "job") -> Checkpoint:
        plan, staged = self.stage(start, until, job=job)
        after = checkpoint_to(start, until, before)
        receipt = self.target(job).commit(Commit(after, before, plan, staged))
        assert receipt.checkpoint is not None
        return receipt.checkpoint


def checkpoint_to(start: int, until: int, before: Checkpoint | None) -> Checkpoint:
    batch = Batch(f"11111111-1111-1111-1111-{start:012}", Offsets({SOURCE: start}), Offsets({SOURCE: until}))
    return checkpoint_after(before, batch, {SOURCE: Counts(until - start, until - start)}, IDS)


def iceberg(folder: Path, spec: PartitionSpec, branch: str = "main") -> Subject:
    config = {
        "iceberg.tables.default-commit-branch": branch,
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }
    return iceberg_subject(config, "ns", spec, lambda: list(folder.rglob("*.parquet")))


def iceberg_subject(
    config: Config, namespace: str, spec: PartitionSpec, leftovers: Callable[[], list[Path]]
) -> Subject:
    name = config["iceberg.tables"]
    catalog = open_catalog(config)
    catalog.create_namespace(namespace)
    catalog.create_table(name, SCHEMA, partition_spec=spec)

    def visible() -> list[int]:
        table = catalog.load_table(name)
        branch = config.get("iceberg.tables.default-commit-branch", "main")
        if branch not in table.refs():
            return []
        return sorted(table.scan().use_ref(branch).to_arrow()["id"].to_pylist())

    return Subject(lambda job: IcebergPlugin().open(job, config), visible, leftovers)


def in_aws(catalog: str, s3: Config) -> Subject:
    """A catalog of AWS and a bucket, both in moto."""
    namespace = f"ns_{uuid.uuid4().hex[:8]}"
    endpoint = s3["iceberg.catalog.s3.endpoint"]
    config = {
        "iceberg.tables": f"{namespace}.t",
        "iceberg.catalog.catalog-impl": f"org.apache.iceberg.aws.{catalog}",
        "iceberg.catalog.warehouse": f"s3://warehouse/{namespace}",
        "iceberg.catalog.glue.endpoint": endpoint,
        "iceberg.catalog.dynamodb.endpoint": endpoint,
        "iceberg.catalog.dynamodb.table-name": namespace,
        "iceberg.catalog.client.access-key-id": s3["iceberg.catalog.s3.access-key-id"],
        "iceberg.catalog.client.secret-access-key": s3["iceberg.catalog.s3.secret-access-key"],
        **s3,
    }

    def leftovers() -> list[Path]:
        store = PyArrowFileIO(catalog_properties(config)).fs_by_scheme("s3", "warehouse")
        found = store.get_file_info(pf.FileSelector(f"warehouse/{namespace}", recursive=True))
        return [Path(one.path) for one in found if one.path.endswith(".parquet")]

    return iceberg_subject(config, namespace, BUCKETS, leftovers)


def delta(folder: Path, partition_by: list[str]) -> Subject:
    DeltaTable.create(str(folder / "ns" / "t"), DELTA_SCHEMA, partition_by=partition_by)

    def visible() -> list[int]:
        return sorted(DeltaTable(str(folder / "ns" / "t")).to_pyarrow_table()["id"].to_pylist())

    config = {"delta.tables": "ns.t", "delta.location": str(folder)}
    return Subject(
        lambda job: DeltaPlugin().open(job, config), visible, lambda: list(folder.rglob("*.parquet"))
    )


def delta_in_bucket(s3: Config) -> Subject:
    """A table in a bucket of moto, to which commits are conditional puts."""
    folder = f"s3://warehouse/delta_{uuid.uuid4().hex[:8]}"
    config = {
        "delta.tables": "t",
        "delta.location": folder,
        **{key.replace("iceberg.catalog.", "delta.storage."): value for key, value in s3.items()},
    }
    storage = Storage.from_config(config)
    place, options = f"{folder}/t", storage.for_delta(folder)
    DeltaTable.create(place, DELTA_SCHEMA, partition_by=["text"], storage_options=options)

    def visible() -> list[int]:
        rows = DeltaTable(place, storage_options=options).to_pyarrow_table()
        return sorted(rows["id"].to_pylist())

    def leftovers() -> list[Path]:
        selector = pf.FileSelector(place.removeprefix("s3://"), recursive=True)
        found = storage.file_system(place).get_file_info(selector)
        return [Path(one.path) for one in found if one.path.endswith(".parquet")]

    return Subject(lambda job: DeltaPlugin().open(job, config), visible, leftovers)


def file(folder: Path) -> Subject:
    path = folder / "out.txt"

    def visible() -> list[int]:
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.removeprefix("{id=").partition(",")[0]) for line in lines]

    def leftovers() -> list[Path]:
        return [path] if path.exists() and path.stat().st_size else []

    return Subject(lambda job: FileSinkPlugin().open(job, {"file": str(path)}), visible, leftovers)


def toy(folder: Path) -> Subject:
    plugin = importlib.import_module("json_folder").JsonFolderPlugin()

    def entries() -> Iterator[Mapping[str, Any]]:
        for log in sorted(folder.glob("_log/*/*.json")):
            yield json.loads(log.read_text())

    def visible() -> list[int]:
        lines = [
            line
            for entry in entries()
            for name in entry["files"]
            for line in (folder / name).read_text().splitlines()
        ]
        return sorted(json.loads(line)["id"] for line in lines)

    def opened(job: str) -> Sink:
        config: Config = {"folder": str(folder)}
        sink: Sink = plugin.open(job, config)
        return sink

    return Subject(opened, visible, lambda: list(folder.glob("*.json")))


def s3_subject(config: Config) -> Subject:
    """Objects of JSON Lines, three records each."""
    config = {
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
        **config,
    }
    store = open_store(config)

    def objects() -> list[str]:
        return [one.key for one in store.list("topics/") if "/_icestream/" not in one.key]

    def visible() -> list[int]:
        lines = [line for key in objects() for line in (store.read(key) or b"").splitlines()]
        return sorted(json.loads(line)["id"] for line in lines)

    def leftovers() -> list[Path]:
        return [Path(key) for key in (*objects(), *(one.key for one in store.open_uploads("")))]

    return Subject(lambda job: S3SinkPlugin().open(job, config), visible, leftovers)


def bucket_config(s3: Config) -> dict[str, str]:
    """A new bucket of moto."""
    endpoint = s3["iceberg.catalog.s3.endpoint"]
    keys = {
        "aws.access.key.id": s3["iceberg.catalog.s3.access-key-id"],
        "aws.secret.access.key": s3["iceberg.catalog.s3.secret-access-key"],
    }
    bucket = f"lake-{uuid.uuid4().hex[:8]}"
    client(endpoint, keys).create_bucket(Bucket=bucket)
    return {"store.url": endpoint, "s3.region": "us-east-1", "s3.bucket.name": bucket, **keys}


def client(endpoint: str, keys: Config) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys["aws.access.key.id"],
        aws_secret_access_key=keys["aws.secret.access.key"],
    )


def jdbc(settings: Config, folder: Path) -> Subject:
    """A table that has no key, in a database that perhaps has others."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    config = {**settings, "table.name.format": name, "icestream.jdbc.checkpoint.table": f"c_{name}"}
    access = access_from(config)
    with connection_to(access, "create a table") as connection:
        execute(connection, f"CREATE TABLE {name} (id BIGINT NOT NULL, text VARCHAR(100))")
        connection.commit()

    def visible() -> list[int]:
        with connection_to(access, "read") as connection:
            return sorted(int(row[0]) for row in rows_of(connection, f"SELECT id FROM {name}"))

    def leftovers() -> list[Path]:
        with connection_to(access, "list tables") as connection:
            ours = tuple(stage_prefix(job, name) for job in ("job", "other"))
            staged = [one.name for one in access.dialect.tables(connection) if one.name.startswith(ours)]
            counted = [rows_of(connection, f"SELECT COUNT(*) FROM {one}")[0][0] for one in (name, *staged)]
        return [Path(one) for one, rows in zip((name, *staged), counted, strict=True) if rows]

    return Subject(lambda job: JdbcSinkPlugin().open(job, config), visible, leftovers, config)


SUBJECTS: Mapping[str, Callable[[Path], Subject]] = {
    "iceberg": lambda folder: iceberg(folder, UNPARTITIONED_PARTITION_SPEC),
    "iceberg-branch": lambda folder: iceberg(folder, UNPARTITIONED_PARTITION_SPEC, "audit"),
    "iceberg-partitioned": lambda folder: iceberg(folder, BUCKETS),
    "delta": lambda folder: delta(folder, []),
    "delta-partitioned": lambda folder: delta(folder, ["text"]),
    "file": file,
    "s3-folder": lambda folder: s3_subject({"store.url": f"file://{folder}", "s3.bucket.name": "lake"}),
    "toy": toy,
    "jdbc-sqlite": lambda folder: jdbc({"connection.url": f"jdbc:sqlite:{folder}/rows.db"}, folder),
}
SERVERS: Mapping[str, str] = {"jdbc-postgresql": "postgresql", "jdbc-mariadb": "mariadb"}
"""Subjects in a server, and the fixture that has it running."""


IN_AWS: Mapping[str, str] = {
    "iceberg-glue": "glue.GlueCatalog",
    "iceberg-dynamodb": "dynamodb.DynamoDbCatalog",
}


# Glue's commits are PyIceberg's own code, those to DynamoDB are ours.
@pytest.fixture(
    params=[
        *sorted(SUBJECTS),
        "s3",
        *SERVERS,
        "delta-s3",
        "iceberg-dynamodb",
        pytest.param("iceberg-glue", marks=pytest.mark.long),
    ]
)
def subject(request: pytest.FixtureRequest, tmp_path: Path, toys: None) -> Iterator[Subject]:
    made = asked_for(request, tmp_path)
    with ExitStack() as opened:
        yield replace(made, open=lambda job: opened.enter_context(closing(made.open(job))))


def asked_for(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    if request.param in IN_AWS:
        return in_aws(IN_AWS[request.param], request.getfixturevalue("s3"))
    if request.param == "delta-s3":
        return delta_in_bucket(request.getfixturevalue("s3"))
    if request.param == "s3":
        return s3_subject(bucket_config(request.getfixturevalue("s3")))
    folder = tmp_path / "target"
    folder.mkdir()
    if request.param in SERVERS:
        return jdbc(request.getfixturevalue(SERVERS[request.param]).settings, folder)
    return SUBJECTS[request.param](folder)


def test_staged_rows_are_not_visible(subject: Subject) -> None:
    assert subject.stage(0, 10)[1].rows == 10
    assert subject.visible() == []
    assert subject.target().found().checkpoint is None


def test_a_commit_makes_rows_visible_with_its_checkpoint(subject: Subject) -> None:
    first = subject.commit(0, 10, None)
    assert subject.visible() == list(range(10))
    assert subject.target().found().offsets == first.offsets == Offsets({SOURCE: 10})
    second = subject.commit(10, 15, first)
    assert subject.target().found().checkpoint == second
    assert (second.previous, second.totals) == (first.commit, Counts(15, 15))
    assert subject.visible() == list(range(15))


def test_a_checkpoint_comes_back_as_it_was(subject: Subject) -> None:
    first = subject.commit(0, 10, None)
    moved = checkpoint_moved(
        first,
        "22222222-2222-2222-2222-222222222222",
        {SOURCE: 4, OTHER: 7},
        replace(IDS, topics={SOURCE.topic: "id", OTHER.topic: "other-id"}),
        Offsets({OTHER: 0}),
    )
    target = subject.target()
    target.commit(Commit(moved, first, target.plan({})))
    found = subject.target().found().checkpoint
    assert found is not None
    assert (found.offsets, found.earlier, found.source) == (moved.offsets, moved.earlier, moved.source)
    assert subject.visible() == list(range(10))


def test_a_stale_commit_is_refused(subject: Subject) -> None:
    first = subject.commit(0, 10, None)
    subject.commit(10, 20, first)
    with pytest.raises(CommitConflict, match="somebody else committed"):
        subject.commit(10, 20, first)
    with pytest.raises(CommitConflict):
        subject.commit(0, 10, None)
    assert subject.visible() == list(range(20))


def test_two_jobs_do_not_know_each_other(subject: Subject) -> None:
    subject.commit(0, 10, None)
    assert subject.target("other").found().checkpoint is None
    subject.commit(10, 20, None, job="other")
    assert subject.target().found().offsets == Offsets({SOURCE: 10})
    assert subject.visible() == list(range(20))


def test_what_is_discarded_leaves_nothing(subject: Subject) -> None:
    _, staged = subject.stage(0, 10)
    subject.target().discard(staged)
    assert subject.leftovers() == []
    subject.commit(0, 5, None)
    assert subject.visible() == list(range(5))


def test_rows_that_the_target_has_are_not_staged_again(subject: Subject) -> None:
    assert subject.stage(0, 10, has_until=7)[1].rows == 3


def test_a_writer_that_only_looks_stages_nothing(subject: Subject) -> None:
    assert subject.stage(0, 10, stages=False)[1].rows == 0
    assert subject.leftovers() == []


def test_an_audit_counts_what_is_there(subject: Subject) -> None:
    checkpoint = subject.commit(0, 10, None)
    audit = subject.target().audit()
    assert audit.found.checkpoint == checkpoint
    assert audit.rows in (10, None)
    if audit.row_offsets is not None:
        layers = audit.row_offsets().layers
        assert {p: [sorted(layer) for layer in found] for p, found in layers.items()} == {
            SOURCE: [list(range(10))]
        }


def test_a_target_without_a_commit_has_no_offsets(subject: Subject) -> None:
    assert subject.target().found().offsets == NOTHING
