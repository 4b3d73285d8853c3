"""S3 whose requests the catalog signs: a job without keys writes, merges, sweeps and cleans up."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pf
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.catalogs.remote_signing import SignatureRefused, SignedFileIO
from icestream.connectors.iceberg.maintenance.orphans import remove_orphans
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.embedded.kafka import Broker
from icestream.jobs.probes import probe_connector
from tests.behaviours.test_sinks import BUCKETS, Subject, iceberg_subject
from tests.http_proxy import proxy
from tests.integration.foreign.conftest import ForeignSpark
from tests.integration.foreign.rest_logins import SignatureGuard
from tests.integration.foreign.signing_service import KEY, SECRET, SigningCatalog
from tests.running import StartConnector

pytestmark = pytest.mark.network

Config = dict[str, str]
Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]
Drained = Callable[..., None]


@pytest.fixture(autouse=True)
def no_login_of_the_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@dataclass
class Signing:
    config: Config
    """Of a connector, without keys."""
    service: SigningCatalog
    store: SignatureGuard
    with_keys: Config
    """The same tables, past the guards."""

    def other_reader(self) -> list[int]:
        table = open_catalog(self.with_keys).load_table(self.config["iceberg.tables"])
        return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def signing(rest: Config) -> Iterator[Signing]:
    store = SignatureGuard(KEY, SECRET, "us-east-1", "s3")
    namespace = f"signed_{uuid.uuid4().hex[:8]}"
    common = {
        "name": namespace,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": namespace,
        "iceberg.catalog.type": "rest",
        "iceberg.tables": f"{namespace}.t",
    }
    with (
        proxy(rest["iceberg.catalog.s3.endpoint"], store) as bucket,
        proxy(rest["iceberg.catalog.uri"], service := SigningCatalog(bucket)) as address,
    ):
        config = {
            **common,
            "iceberg.catalog": f"signed_{uuid.uuid4().hex[:8]}",
            "iceberg.catalog.uri": address,
            "iceberg.catalog.credential": service.guard.credential,
            "iceberg.catalog.scope": service.guard.scope,
            "iceberg.catalog.oauth2-server-uri": f"{address}/realms/lake/token",
        }
        yield Signing(config, service, store, {**rest, **common, "iceberg.catalog": "past_the_guards"})


def subject(signing: Signing, spec: PartitionSpec = BUCKETS, **more: str) -> Subject:
    config = {**signing.config, **{f"iceberg.catalog.{key}": value for key, value in more.items()}}
    return iceberg_subject(config, config["iceberg.tables"].partition(".")[0], spec, list)


def test_a_job_without_keys_writes_a_table_that_others_read(
    signing: Signing, produce: Produce, start_job: StartConnector, drained: Drained
) -> None:
    made = subject(signing)
    name = signing.config["name"]
    produce(name, [{"id": number, "text": f"t{number}"} for number in range(600)])
    job = start_job(
        name,
        {
            **signing.config,
            "iceberg.control.commit.interval-ms": "200",
            "icestream.commit.rows": "200",
        },
        paused=False,
    )
    drained(job, 600)
    job.stop()
    assert made.visible() == list(range(600)) == signing.other_reader()
    assert signing.store.refused == [] and signing.store.passed > 10
    # Each request was signed, and only once.
    assert len(signing.service.asked) == signing.store.passed
    assert {"GET", "PUT", "HEAD"} <= {verb for verb, _ in signing.service.asked}
    assert KEY not in json.dumps(signing.config)


@pytest.mark.long
def test_spark_sql_has_no_keys_either(signing: Signing, foreign_spark: ForeignSpark) -> None:
    # Iceberg's own client asks for a token of another scope, if it may; this one is for everything.
    signing.service.guard.token = "for-everything"
    for key in ("credential", "scope", "oauth2-server-uri"):
        del signing.config[f"iceberg.catalog.{key}"]
    signing.config |= {
        "iceberg.catalog.token": "for-everything",
        "iceberg.catalog.s3.remote-signing-enabled": "true",
        "iceberg.catalog.s3.signer.endpoint": signing.service.path,
    }
    made = subject(signing)
    made.commit(0, 10, None)
    table = signing.config["iceberg.tables"]
    before = len(signing.service.asked)
    told = foreign_spark(
        signing.config,
        f"MERGE INTO {table} AS t USING (SELECT 3L AS id UNION ALL SELECT 10L) AS s ON t.id = s.id "
        f"WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, text) VALUES (s.id, 'ten'); "
        f"SELECT count(*) FROM {table}",
    )
    assert [list(row) for row in told[-1].rows] == [[10]]
    assert made.visible() == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert len(signing.service.asked) > before + 5 and signing.store.refused == []


def test_tables_are_looked_after_through_the_service(signing: Signing) -> None:
    made = subject(signing)
    before = None
    for start in range(0, 40, 10):
        before = made.commit(start, start + 10, before)
        if start == 10:
            # The next batch is told the new one.
            signing.service.guard.expire()
    config = {**signing.config, "icestream.maintenance.compaction.min-files": "2"}
    maintainer = IcebergPlugin().maintainer("job", config, config["iceberg.tables"])
    merged = maintainer.compact({"min-files": 2}, dry_run=False)[0]
    assert merged.error is None and merged.after < merged.before
    table = open_catalog(signing.config).load_table(config["iceberg.tables"])
    assert isinstance(table.io, SignedFileIO)
    stray = f"{table.location()}/data/stray.parquet"
    with table.io.new_output(stray).create() as file:
        file.write(b"nobody's")
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=30)
    found = remove_orphans(table, {}, dt.timedelta(days=7), later)
    assert found.orphans >= 1 and found.left == 0
    assert not table.io.new_input(stray).exists()
    assert made.target().sweep(before.commit if before else "", later) == 0
    assert made.visible() == list(range(40)) == signing.other_reader()
    assert signing.store.refused == []


def test_files_of_all_sizes_and_those_that_are_missing(signing: Signing) -> None:
    made = subject(signing)
    table = open_catalog(signing.config).load_table(signing.config["iceberg.tables"])
    place = f"{table.location()}/data/with space+and=signs"
    big = os.urandom(1024) * (11 * 1024)
    for size in (0, 1, len(big)):
        with table.io.new_output(place).create(overwrite=True) as file:
            file.write(big[:size])
        assert len(table.io.new_input(place)) == size
        with table.io.new_input(place).open() as stream:
            assert stream.read() == big[:size]
            stream.seek(size // 2)
            assert stream.read(7) == big[:size][size // 2 :][:7]
    with pytest.raises(FileExistsError):
        table.io.new_output(place).create(overwrite=False)
    table.io.delete(place)
    assert not table.io.new_input(place).exists()
    with pytest.raises(FileNotFoundError):
        table.io.new_input(place).open()
    scheme, bucket, folder = PyArrowFileIO.parse_location(f"{table.location()}/nowhere", {})
    files = table.io.fs_by_scheme(scheme, bucket)
    assert files.get_file_info(pf.FileSelector(folder, allow_not_found=True, recursive=True)) == []
    with pytest.raises(FileNotFoundError):
        files.get_file_info(pf.FileSelector(folder))
    # Without a signature the store gives nothing.
    keyless = PyArrowFileIO(
        {"s3.endpoint": signing.service.store, "s3.region": "us-east-1", "s3.anonymous": "true"}
    )
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        keyless.new_input(table.metadata_location).open()
    assert signing.store.refused != [] and made.visible() == []


def test_the_service_is_asked_where_the_login_may_go(signing: Signing, broker: Broker) -> None:
    made = subject(signing, **{"s3.remote-signing-enabled": "true"})
    made.commit(0, 10, None)
    # Whoever wants signatures does not ask for keys.
    assert signing.service.delegations == {"remote-signing"}
    elsewhere = "http://127.0.0.1:9/other"
    signing.service.config |= {"s3.signer.uri": elsewhere}
    with pytest.raises(ConfigError, match=r"s3\.signer\.uri: .* http://127\.0\.0\.1:9, .* not the catalog's"):
        made.target().plan({})
    problems = probe_connector(signing.config, {"bootstrap.servers": broker.bootstrap})
    assert "iceberg.catalog.s3.signer.uri" in [problem.key for problem in problems]
    # The connector's own word is enough.
    chosen = {**signing.config, "iceberg.catalog.s3.signer.uri": elsewhere}
    table = open_catalog(chosen).load_table(chosen["iceberg.tables"])
    assert isinstance(table.io, SignedFileIO)
    with pytest.raises(OSError, match="the signing service cannot be reached"):
        table.io.new_input(table.metadata_location).open()


def test_a_service_that_refuses_is_named(signing: Signing) -> None:
    made = subject(signing, UNPARTITIONED_PARTITION_SPEC)
    signing.service.refuses = True
    with pytest.raises(
        SinkUnavailable, match=r"the signing service at http://127\.0\.0\.1:.* answers HTTP 403"
    ) as told:
        made.commit(0, 10, None)
    assert isinstance(told.value.__cause__, SignatureRefused)
    assert signing.service.guard.token not in str(told.value)
    signing.service.refuses = False
    made.commit(0, 10, None)
    assert made.visible() == list(range(10))
