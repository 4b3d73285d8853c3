"""Commits to a branch: rows and checkpoint are there, and what others have on main is not touched."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from icestream.api.checkpoint import Checkpoint
from icestream.api.offsets import Offsets
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from tests.behaviours.test_sinks import SCHEMA, SOURCE, Subject

ON_BRANCH = {"iceberg.tables.default-commit-branch": "audit"}


def opened(folder: Path, **options: str) -> Subject:
    config = {
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
        **options,
    }
    catalog = open_catalog(config)
    catalog.create_namespace_if_not_exists("ns")
    catalog.create_table_if_not_exists("ns.t", SCHEMA)
    return Subject(lambda job: IcebergPlugin().open(job, config), list, list)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    opened(tmp_path)
    return open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )


def ids(catalog: Catalog, branch: str) -> list[int]:
    table = catalog.load_table("ns.t")
    return sorted(table.scan().use_ref(branch).to_arrow()["id"].to_pylist()) if branch in table.refs() else []


def commits(subject: Subject, job: str, *bounds: int) -> Checkpoint | None:
    before = subject.target(job).found().checkpoint
    for start, until in itertools.pairwise(bounds):
        before = subject.commit(start, until, before, job)
    return before


def test_rows_are_on_the_branch_only(tmp_path: Path, catalog: Catalog) -> None:
    main, branch = opened(tmp_path), opened(tmp_path, **ON_BRANCH)
    commits(main, "others", 0, 10)
    last = commits(branch, "job", 10, 15, 20)
    commits(main, "others", 30, 35)
    # It began where main was.
    assert ids(catalog, "audit") == list(range(20))
    assert ids(catalog, "main") == [*range(10), *range(30, 35)]
    assert branch.target().found().checkpoint == last
    assert main.target("others").found().offsets == Offsets({SOURCE: 35})
    assert branch.target().audit().rows == 20
    audit = branch.target().audit().row_offsets
    assert audit is not None and len(audit().layers[SOURCE][0]) == 20


def test_a_branch_of_an_empty_table_begins_with_its_first_commit(tmp_path: Path, catalog: Catalog) -> None:
    commits(opened(tmp_path, **ON_BRANCH), "job", 0, 5)
    assert (ids(catalog, "audit"), ids(catalog, "main")) == (list(range(5)), [])


def test_a_table_may_have_a_branch_of_its_own(tmp_path: Path, catalog: Catalog) -> None:
    own = {"iceberg.table.ns.t.commit-branch": "own", **ON_BRANCH}
    commits(opened(tmp_path, **own), "job", 0, 5)
    assert (ids(catalog, "own"), ids(catalog, "audit")) == (list(range(5)), [])


def test_a_branch_that_was_dropped_gets_its_rows_again(tmp_path: Path, catalog: Catalog) -> None:
    main, branch = opened(tmp_path), opened(tmp_path, **ON_BRANCH)
    commits(main, "others", 0, 10)
    last = commits(branch, "job", 10, 15)
    table = catalog.load_table("ns.t")
    table.manage_snapshots().remove_branch("audit").commit()
    found = branch.target().found()
    assert found.checkpoint is None
    assert found.rolled_back_from == last


def test_a_job_that_goes_from_main_to_a_new_branch_goes_on_where_it_was(
    tmp_path: Path, catalog: Catalog
) -> None:
    last = commits(opened(tmp_path), "job", 0, 10)
    branch = opened(tmp_path, **ON_BRANCH)
    assert branch.target().found().checkpoint == last
    commits(branch, "job", 10, 15)
    assert (ids(catalog, "audit"), ids(catalog, "main")) == (list(range(15)), list(range(10)))
