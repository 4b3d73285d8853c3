"""Catalogs are closed by those who opened them: a process that opens and drops them for a day holds no more
files open than before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from sqlalchemy import NullPool, QueuePool

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.catalogs import sharing, sql_catalog
from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.jobs.sinks.limited_sink import LimitedSink
from icestream.jobs.sinks.target_commits import target_commits
from tests.open_files import times_open
from tests.unit.connectors.iceberg.maintained import Job, catalog_config, new_catalog

PLUGIN = IcebergPlugin()


@pytest.fixture(params=[NullPool, QueuePool], ids=["as a file", "as a server"])
def catalog_file(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Of a catalog whose connections are kept by nobody, or by the catalog, as those to a server are."""
    with new_catalog(tmp_path) as catalog:
        Job(catalog).commit()
    monkeypatch.setattr(sql_catalog, "NullPool", request.param)
    before = {*sharing._OPEN}
    yield tmp_path / "catalog.db"
    assert {*sharing._OPEN} == before


def test_jobs_with_the_same_settings_share_a_catalog_that_the_last_of_them_closes(catalog_file: Path) -> None:
    config = catalog_config(catalog_file.parent)
    first, second = SharedCatalog(config), SharedCatalog(config)
    assert first.catalog is second.catalog
    with SharedCatalog({**config, "iceberg.catalog": "other"}) as other:
        assert other is not first.catalog
    first.catalog.load_table("ns.t")
    kept = times_open(catalog_file)
    first.close()
    first.close()
    assert times_open(catalog_file) == kept
    with SharedCatalog(config) as third:
        assert third is second.catalog
    second.close()
    assert times_open(catalog_file) == 0
    with SharedCatalog(config) as anew:
        assert anew is not second.catalog
        anew.load_table("ns.t")
    assert times_open(catalog_file) == 0


def test_of_two_that_open_a_catalog_at_the_same_time_one_is_kept(
    catalog_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = catalog_config(catalog_file.parent)
    opened = sharing.open_catalog
    faster: list[SharedCatalog] = []

    def slow(asked: dict[str, str]) -> object:
        monkeypatch.undo()
        monkeypatch.setattr(sql_catalog, "NullPool", QueuePool)
        faster.append(SharedCatalog(config))
        return opened(asked)

    monkeypatch.setattr(sharing, "open_catalog", slow)
    slower = SharedCatalog(config)
    assert slower.catalog is faster[0].catalog
    slower.close()
    faster[0].close()
    assert times_open(catalog_file) == 0


def use_sink(config: dict[str, str]) -> None:
    with closing(PLUGIN.open("job", config)) as sink:
        assert sink.targets()[0].found().checkpoint is not None


def sweep(config: dict[str, str]) -> None:
    with closing(LimitedSink(lambda: PLUGIN.open("job", config), 60)) as sink:
        sink.target("ns.t").sweep("none", dt.datetime.now(dt.UTC))


def fail_to_open(config: dict[str, str]) -> None:
    # Spark cannot have a catalog of this name.
    wrong = {
        "iceberg.catalog": "a.b",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.default-id-columns": "id",
    }
    with pytest.raises(ConfigError):
        PLUGIN.open("job", {**config, **wrong})


def validate(config: dict[str, str]) -> None:
    for probe in PLUGIN.probes({**config, "name": "job"}, {}):
        assert probe.ask(probe) == []


def maintain(config: dict[str, str]) -> None:
    on = {"icestream.maintenance.enabled": "true"}
    with closing(PLUGIN.maintainer("job", {**config, **on}, "ns.t")) as maintainer:
        assert maintainer.run(dt.datetime.now(dt.UTC), thorough=True, turn=nullcontext()).error is None
        assert len(maintainer.history()) == 1


def show_commits(config: dict[str, str]) -> None:
    assert len(target_commits("job", config, 10)) == 1


@pytest.mark.parametrize("use", [use_sink, sweep, fail_to_open, validate, maintain, show_commits])
def test_nothing_stays_open_after_use(use: Callable[[dict[str, str]], None], catalog_file: Path) -> None:
    for number in range(20):
        # Every one of them is a catalog of its own.
        use({**catalog_config(catalog_file.parent), "iceberg.catalog.s3.region": f"region-{number}"})
        assert times_open(catalog_file) == 0


def test_a_file_that_is_no_catalog_does_not_stay_open(tmp_path: Path) -> None:
    config = catalog_config(tmp_path)
    file = tmp_path / "catalog.db"
    file.write_bytes(b"this is no database, and so no catalog " * 100)
    for _ in range(20):
        with pytest.raises(Exception, match="opening catalog 'iceberg'"):
            SharedCatalog(config)
    assert times_open(file) == 0
