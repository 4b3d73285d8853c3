"""`icestream.maintenance.*`: off unless asked for, per connector and per table; what is wrong is said."""

from __future__ import annotations

import datetime as dt

import pytest

from icestream.connectors.iceberg import settings
from icestream.connectors.iceberg.maintenance.settings import (
    MAINTENANCE,
    maintenance_of,
    maintenance_problems,
    rhythm_of,
)
from icestream.connectors.iceberg.plugin import IcebergPlugin

ON = {"icestream.maintenance.enabled": "true"}


def test_nothing_is_maintained_unless_asked_for() -> None:
    assert rhythm_of({}, aside=True) is None
    assert not maintenance_of({}, "ns.t").enabled
    assert maintenance_of(ON, "ns.t").enabled
    only = {"icestream.maintenance.table.ns.t.enabled": "true"}
    assert rhythm_of(only, aside=True) is not None
    assert maintenance_of(only, "ns.t").enabled
    assert not maintenance_of(only, "ns.u").enabled
    assert not maintenance_of({**ON, "icestream.maintenance.table.ns.t.enabled": "false"}, "ns.t").enabled


def test_every_key_counts() -> None:
    keys = {
        "icestream.maintenance.enabled": "true",
        "icestream.maintenance.interval-ms": "5000",
        "icestream.maintenance.commits": "7",
        "icestream.maintenance.compaction.enabled": "false",
        "icestream.maintenance.compaction.min-files": "3",
        "icestream.maintenance.compaction.target-bytes": "2048",
        "icestream.maintenance.compaction.deletes-percent": "50",
        "icestream.maintenance.manifests.min-count": "4",
        "icestream.maintenance.expire.enabled": "false",
        "icestream.maintenance.expire.older-than-ms": "1000",
        "icestream.maintenance.expire.retain-last": "2",
        "icestream.maintenance.expire.max-snapshots": "9",
        "icestream.maintenance.orphans.enabled": "false",
        "icestream.maintenance.orphans.older-than-ms": "86400000",
    }
    assert set(keys) == set(MAINTENANCE.names)
    found = maintenance_of(keys, "ns.t")
    assert (found.min_files, found.target_bytes, found.deletes_percent, found.min_manifests) == (
        3,
        2048,
        50,
        4,
    )
    assert (found.compaction, found.expire, found.orphans) == (False, False, False)
    assert (found.retain_last, found.max_snapshots) == (2, 9)
    assert found.older_than == dt.timedelta(seconds=1)
    assert found.orphans_older_than == dt.timedelta(days=1)
    rhythm = rhythm_of(keys, aside=True)
    assert rhythm is not None
    assert (rhythm.seconds, rhythm.commits, rhythm.aside) == (5.0, 7, True)
    # And each but those of the rhythm for one table.
    of_a_table = {
        key.replace("maintenance.", "maintenance.table.a.b."): value
        for key, value in keys.items()
        if key not in ("icestream.maintenance.interval-ms", "icestream.maintenance.commits")
    }
    assert maintenance_of(of_a_table, "a.b") == found
    assert maintenance_problems(of_a_table) == []
    assert maintenance_of(of_a_table, "a.c") == maintenance_of({}, "a.c")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("icestream.maintenance.table.ns.t.compaction.minfiles", "3", "keys are enabled, compaction.enabled"),
        ("icestream.maintenance.table.t.enabled", "true", "<namespace.table>"),
        ("icestream.maintenance.table.ns.t.compaction.min-files", "1", "Value must be at least 2"),
        ("icestream.maintenance.table.ns.t.enabled", "yes", "either true or false"),
    ],
)
def test_a_wrong_key_of_a_table_is_an_error(key: str, value: str, said: str) -> None:
    (problem,) = maintenance_problems({key: value})
    assert problem.key == key
    assert said in problem.message


def test_orphans_of_less_than_a_day_are_refused() -> None:
    (problem,) = settings.ICEBERG_SINK.problems({"icestream.maintenance.orphans.older-than-ms": "1000"})
    assert "at least 86400000" in problem.message


def test_upserts_are_maintained_between_batches() -> None:
    options = IcebergPlugin().options({**ON, "iceberg.tables.upsert-mode-enabled": "true"})
    assert options.maintenance is not None
    assert not options.maintenance.aside
    options = IcebergPlugin().options(ON)
    assert options.maintenance is not None
    assert options.maintenance.aside
