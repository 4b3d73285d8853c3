"""Commits that write only what is new: the files are those that PyIceberg would write, and nothing of the
history is read, copied or encoded again. Fail when the private parts of PyIceberg that are used are gone."""

import json
import uuid
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyiceberg.manifest
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import LongType, NestedField

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.commits.light_metadata import MetadataTexts
from icestream.connectors.iceberg.commits.manifest_lists import AvroContainer
from icestream.connectors.iceberg.files.stage import StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins

P = Partition("t", 0)
SOURCE = TopicIds("cluster", {"t": "id"})


class Job:
    """Commits one row each, or none."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.target = IcebergTable(catalog, "ns.t", "job", write_props={})
        self.ids: list[int] = []
        self._before: Checkpoint | None = None
        self._at = 0

    def commit(self, *, rows: int = 1) -> None:
        plan = self.target.plan({})
        until = self._at + 1
        batch = Batch(f"commit-{self._at}", Offsets({P: self._at}), Offsets({P: until}))
        checkpoint = checkpoint_after(self._before, batch, {P: Counts(1, rows)}, SOURCE)
        writer = StageWriter(plan)
        if rows:
            writer.write(
                pa.table({"id": [self._at]}, schema=plan.arrow_schema),
                RowOrigins.of_one(P, np.arange(self._at, until)),
            )
            self.ids.append(self._at)
        staged = Staged(writer.close() if rows else [])
        self._before = self.target.commit(Commit(checkpoint, self._before, plan, staged)).checkpoint
        self._at = until

    @property
    def table(self) -> Table:
        return self.catalog.load_table("ns.t")

    @property
    def manifest_list(self) -> bytes:
        return _bytes(self.table.io, _current(self.table).manifest_list)

    def rows(self) -> list[int]:
        return sorted(self.table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[], Catalog]:
    return lambda: open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )


@pytest.fixture
def job(opened: Callable[[], Catalog]) -> Job:
    catalog = opened()
    catalog.create_namespace("ns")
    catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType(), required=True)))
    return Job(catalog)


def test_the_metadata_file_is_the_one_that_pyiceberg_would_write(job: Job) -> None:
    for _ in range(4):
        job.commit()
        table = job.table
        written = json.loads(_bytes(table.io, table.metadata_location))
        assert written == json.loads(table.metadata.model_dump_json(exclude_none=True))


def test_texts_of_snapshots_that_are_gone_or_changed_are_not_written(job: Job, tmp_path: Path) -> None:
    for _ in range(3):
        job.commit()
    texts, io = MetadataTexts(), job.table.io
    whole = job.table.metadata
    second = whole.snapshots[1].model_copy(update={"parent_snapshot_id": None})
    histories = [
        whole.snapshots,
        whole.snapshots[1:],
        [second, *whole.snapshots[2:]],
        [*whole.snapshots[::2]],
    ]
    for number, snapshots in enumerate(histories):
        metadata = whole.model_copy(update={"snapshots": snapshots})
        path = f"file://{tmp_path}/{number}.metadata.json"
        texts.write(metadata, io, path)
        assert json.loads(_bytes(io, path)) == json.loads(metadata.model_dump_json(exclude_none=True))


def test_little_text_is_kept_of_many_tables(job: Job, tmp_path: Path) -> None:
    job.commit()
    texts = MetadataTexts(most_bytes=1)
    for number in range(3):
        metadata = job.table.metadata.model_copy(update={"table_uuid": _uuid(number)})
        texts.write(metadata, job.table.io, f"file://{tmp_path}/{number}.metadata.json")
    assert list(texts._kept) == [_uuid(2)]


def test_a_copy_of_metadata_has_lists_of_its_own_and_the_same_entries(job: Job) -> None:
    for _ in range(2):
        job.commit()
    metadata = job.table.metadata
    copied = deepcopy(metadata)
    assert copied == metadata
    assert copied.snapshots is not metadata.snapshots
    assert copied.snapshots[0] is metadata.snapshots[0]
    assert copied.schemas[0] is not metadata.schemas[0]
    for one in (metadata, copied, metadata.model_copy(update={"snapshots": list(metadata.snapshots)})):
        assert one.snapshot_by_id(_current(job.table).snapshot_id) is _current(job.table)
        assert one.snapshot_by_id(5) is None


def test_a_list_of_manifests_is_copied_and_has_all_of_them(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.commit()
    monkeypatch.setattr(pyiceberg.manifest, "read_manifest_list", _not_called)
    for number in range(40):
        job.commit(rows=number % 5 != 0)
    monkeypatch.undo()
    manifests = _current(job.table).manifests(job.table.io)
    assert len({manifest.manifest_path for manifest in manifests}) == len(manifests) == len(job.ids) == 33
    assert job.rows() == job.ids
    # As the list says of itself, and as a reader may count on.
    content = AvroContainer.of(job.manifest_list)
    assert sum(block.count for block in content.blocks) == 33
    assert len(content.blocks) <= 6
    assert all(manifest.sequence_number <= 41 for manifest in manifests)
    assert content.to_bytes() == job.manifest_list
    assert f"{_current(job.table).snapshot_id}".encode() in content.header


@pytest.mark.parametrize("codec", ["gzip", "null", "zstandard"])
def test_blocks_are_joined_in_the_codec_of_the_table(job: Job, codec: str) -> None:
    job.commit()
    job.commit()
    with job.table.transaction() as change:
        change.set_properties({"write.avro.compression-codec": codec})
    for _ in range(5):
        job.commit()
    assert job.rows() == job.ids
    assert len(_current(job.table).manifests(job.table.io)) == 7


def test_a_list_that_somebody_else_wrote_is_read(job: Job, opened: Callable[[], Catalog]) -> None:
    job.commit()
    job.commit()
    foreign = opened().load_table("ns.t")
    foreign.append(pa.table({"id": [100]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    job.commit()
    job.commit()
    assert job.rows() == [*job.ids, 100]


def test_commits_without_rows_only_leave_a_list_that_can_be_read(job: Job) -> None:
    for _ in range(3):
        job.commit(rows=0)
    assert _current(job.table).manifests(job.table.io) == []
    job.commit()
    job.commit(rows=0)
    assert job.rows() == job.ids == [3]


def _uuid(number: int) -> uuid.UUID:
    return uuid.UUID(int=number)


def _current(table: Table) -> Snapshot:
    current = table.current_snapshot()
    assert current is not None
    return current


def _bytes(io: FileIO, location: str) -> bytes:
    with io.new_input(location).open() as stream:
        return stream.read()


def _not_called(file: InputFile) -> list[ManifestFile]:
    raise AssertionError(f"{file.location} was read")
