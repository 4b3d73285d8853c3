"""A write on a job's branch becomes visible by one compare-and-set; PyIceberg stands in for Spark here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, NestedField

from icestream.api.errors import CommitConflict, CommitUnknown
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.upserts.branch_publish import BranchWrite, job_branch, spark_name

BRANCH = job_branch("my job")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    opened = open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )
    opened.create_namespace("ns")
    opened.create_table("ns.t", Schema(NestedField(1, "id", LongType())))
    append(opened, 1)
    return opened


def append(catalog: Catalog, id_: int, branch: str = "main", **summary: str) -> None:
    catalog.load_table("ns.t").append(pa.table({"id": [id_]}), snapshot_properties=summary, branch=branch)


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist())


def begun(catalog: Catalog) -> BranchWrite:
    return BranchWrite.begin(catalog, catalog.load_table("ns.t"), "ns.t", "my job")


def test_what_is_on_the_branch_becomes_visible_at_once_with_properties(catalog: Catalog) -> None:
    write = begun(catalog)
    append(catalog, 2, BRANCH, mine="yes")
    append(catalog, 3, BRANCH, mine="yes")
    assert ids(catalog) == [1]
    head = write.publish({"checkpoint": "at 7"})
    table = catalog.load_table("ns.t")
    assert ids(catalog) == [1, 2, 3]
    assert table.metadata.current_snapshot_id == head and table.properties["checkpoint"] == "at 7"
    assert list(table.metadata.refs) == ["main"]


def test_nothing_written_is_told(catalog: Catalog) -> None:
    assert begun(catalog).publish({"checkpoint": "at 7"}) is None
    assert "checkpoint" not in catalog.load_table("ns.t").properties


def test_a_commit_of_somebody_else_refuses_it(catalog: Catalog) -> None:
    write = begun(catalog)
    append(catalog, 2, BRANCH)
    append(catalog, 9)
    with pytest.raises(CommitConflict) as refused:
        write.publish({"checkpoint": "at 7"})
    assert refused.value.certain and ids(catalog) == [1, 9]
    assert "checkpoint" not in catalog.load_table("ns.t").properties


def test_a_branch_that_was_left_behind_is_replaced(catalog: Catalog) -> None:
    begun(catalog)
    append(catalog, 2, BRANCH)
    append(catalog, 9)
    write = begun(catalog)
    append(catalog, 3, BRANCH)
    write.publish()
    assert ids(catalog) == [1, 3, 9]


def test_a_table_that_moved_before_the_branch_was_made_is_a_conflict(catalog: Catalog) -> None:
    stale = catalog.load_table("ns.t")
    append(catalog, 9)
    with pytest.raises(CommitConflict):
        BranchWrite.begin(catalog, stale, "ns.t", "my job")


def test_what_a_job_that_should_be_dead_wrote_to_the_branch_is_never_published(catalog: Catalog) -> None:
    write = begun(catalog)
    append(catalog, 2, BRANCH, commit="mine")
    append(catalog, 4, BRANCH, commit="zombie's")
    with pytest.raises(CommitConflict, match="somebody else wrote"):
        write.publish(
            is_ours=lambda one: bool(
                one.summary and one.summary.additional_properties.get("commit") == "mine"
            )
        )
    append(catalog, 9)
    begun(catalog)
    with pytest.raises(CommitConflict, match="has moved"):
        write.publish()
    assert ids(catalog) == [1, 9]


def test_a_branch_that_a_job_that_should_be_dead_has_put_back_is_not_taken_for_nothing_written(
    catalog: Catalog,
) -> None:
    write = begun(catalog)
    append(catalog, 2, BRANCH, mine="yes")
    begun(catalog)
    with pytest.raises(CommitConflict) as refused:
        write.publish(is_ours=lambda one: one.summary is not None and one.summary["mine"] == "yes")
    assert refused.value.certain and ids(catalog) == [1]


def test_a_branch_that_was_given_up_is_gone(catalog: Catalog) -> None:
    write = begun(catalog)
    append(catalog, 2, BRANCH)
    write.give_up()
    with pytest.raises(CommitConflict, match="lost the branch"):
        write.publish()
    assert ids(catalog) == [1]


def test_a_check_of_the_table_refuses_it(catalog: Catalog) -> None:
    def refuse(metadata: TableMetadata) -> None:
        raise CommitConflict("the job is elsewhere")

    write = begun(catalog)
    append(catalog, 2, BRANCH)
    with pytest.raises(CommitConflict, match="elsewhere"):
        write.publish(check=refuse)
    assert ids(catalog) == [1]


def test_a_lost_answer_is_settled_by_the_table(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Landed, refused though it landed, and lost on the way."""
    commit: Callable[..., Any] = type(catalog).commit_table

    def landing(error: Exception) -> Callable[..., Any]:
        def land(*arguments: Any) -> Any:
            commit(catalog, *arguments)
            raise error

        return land

    for number, error in enumerate((TimeoutError("gone"), CommitFailedException("409"))):
        write = begun(catalog)
        append(catalog, 2 + number, BRANCH)
        with monkeypatch.context() as patched:
            patched.setattr(catalog, "commit_table", landing(error))
            assert write.publish() == catalog.load_table("ns.t").metadata.current_snapshot_id
    assert ids(catalog) == [1, 2, 3]

    def lost(*arguments: Any) -> Any:
        raise TimeoutError("gone")

    write = begun(catalog)
    append(catalog, 4, BRANCH)
    monkeypatch.setattr(catalog, "commit_table", lost)
    with pytest.raises(CommitConflict) as conflict:
        write.publish()
    assert not conflict.value.certain and ids(catalog) == [1, 2, 3]
    load = catalog.load_table

    def once(name: str) -> Any:
        monkeypatch.setattr(catalog, "load_table", lost)
        return load(name)

    monkeypatch.setattr(catalog, "load_table", once)
    with pytest.raises(CommitUnknown):
        write.publish()


def test_names_are_quoted_for_spark(catalog: Catalog) -> None:
    assert spark_name("demo", "a`b", "t") == "`demo`.`a``b`.`t`"
    assert begun(catalog).target("demo") == f"`demo`.`ns`.`t`.`branch_{BRANCH}`"
