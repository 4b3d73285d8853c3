"""The keys of commits, groups and clients, from the config to what the manager is told."""

from __future__ import annotations

import os

import pytest

from icestream.api.sink import SinkOptions
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.settings import group_of
from icestream.jobs.sinks.job import sink_job

APACHE = "org.apache.iceberg.connect.IcebergSinkConnector"
TABULAR = "io.tabular.iceberg.connect.IcebergSinkConnector"
BASE = {
    "connector.class": APACHE,
    "topics": "t",
    "iceberg.tables": "ns.t",
    "iceberg.catalog.type": "jdbc",
    "iceberg.catalog.uri": "jdbc:sqlite:catalog.db",
}


def options(**more: str) -> SinkOptions:
    return IcebergPlugin().options({**BASE, **more})


def warnings(**more: str) -> list[str]:
    return IcebergPlugin().warnings({**BASE, **more})


def test_what_holds_without_any_of_them() -> None:
    plain = options()
    assert plain.commit_seconds == 300.0
    assert plain.commit_threads == 2 * (os.cpu_count() or 1)
    assert plain.commit_answer_seconds is None
    assert plain.most_failed_commits is None
    assert plain.group is None


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("iceberg.control.commit.interval-ms", "1500", "commit_seconds", 1.5),
        ("iceberg.control.commit.threads", "7", "commit_threads", 7),
        ("iceberg.control.commit.timeout-ms", "45000", "commit_answer_seconds", 45.0),
        ("iceberg.control.commit.max-consecutive-failures", "3", "most_failed_commits", 3),
        ("iceberg.connect.group-id", "mine", "group", "mine"),
    ],
)
def test_a_key_reaches_the_manager(key: str, value: str, field: str, expected: object) -> None:
    assert getattr(options(**{key: value}), field) == expected
    assert warnings(**{key: value}) == []


@pytest.mark.parametrize(
    "key",
    [
        "iceberg.control.commit.interval-ms",
        "iceberg.control.commit.threads",
        "iceberg.control.commit.timeout-ms",
        "iceberg.control.commit.max-consecutive-failures",
    ],
)
def test_none_of_them_may_be_nought(key: str) -> None:
    setting = next(one for one in IcebergPlugin.settings.settings if one.name == key)
    with pytest.raises(ValueError, match="at least 1"):
        setting.parse("0")


def test_a_batch_has_at_most_so_many_rows_and_bytes() -> None:
    config = {**BASE, "icestream.commit.rows": "20", "icestream.commit.bytes": "400"}
    limits = sink_job("logs", config, IcebergPlugin().options(config)).limits
    assert (limits.rows, limits.bytes) == (20, 400)


def test_the_prefix_of_transactional_ids_comes_first() -> None:
    config = {**BASE, "iceberg.coordinator.transactional.prefix": "team-a."}
    job = sink_job("logs", config, IcebergPlugin().options(config))
    assert job.transactional_id == "team-a.connect-logs-coordinator"


def test_the_control_group_of_tabular_has_the_offsets_and_apache_never_had_one() -> None:
    group = {"iceberg.control.group-id": "cg-control-logs"}
    assert group_of("logs", {**BASE, **group, "connector.class": TABULAR}) == "cg-control-logs"
    assert IcebergPlugin().warnings({**BASE, **group, "connector.class": TABULAR}) == []
    assert group_of("logs", {**BASE, **group}) == "connect-logs"
    assert "with Tabular's class only" in warnings(**group)[0]
    both = {**BASE, **group, "connector.class": TABULAR, "iceberg.connect.group-id": "mine"}
    assert group_of("logs", both) == "mine"


@pytest.mark.parametrize(
    "key", ["iceberg.control.group-id-prefix", "iceberg.coordinator-executor-keep-alive-timeout-ms"]
)
def test_keys_of_parts_that_java_has_and_we_do_not_are_taken_and_said_to_have_no_effect(key: str) -> None:
    config = {**BASE, key: "7"}
    assert IcebergPlugin().problems(config) == []
    assert [warning.split(":")[0] for warning in IcebergPlugin().warnings(config)] == [
        f"'{key}' has no effect"
    ]
