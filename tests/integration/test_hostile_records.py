"""Records that were made to stop a job: with errors.tolerance=all each of them is a row or a dead letter, and
those around it land. A real broker, the job manager, and what a task does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from icestream.embedded.kafka import Broker
from tests.integration.jdbc.sink_job import SinkTest, with_schema

GROWS = {"auto.create": "true", "auto.evolve": "true"}
DAY = {"type": "int32", "optional": True, "name": "org.apache.kafka.connect.data.Date"}
MOMENT = {"type": "int64", "optional": True, "name": "org.apache.kafka.connect.data.Timestamp"}
GOOD = {"id": 1, "ok": "y"}


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.long), "sqlite", "delta"])
def job(broker: Broker, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkTest]:
    """With a table that grows."""
    settings: Mapping[str, str] = {"connection.url": f"jdbc:sqlite:{tmp_path}/rows.db", **GROWS}
    if request.param in ("postgresql", "mariadb"):
        settings = {**request.getfixturevalue(request.param).settings, **GROWS}
    made = SinkTest(settings, broker)
    if request.param == "delta":
        made.settings = {
            "connector.class": "io.icestream.connect.delta.DeltaSinkConnector",
            "delta.location": str(tmp_path / "delta"),
            "delta.tables": made.name,
            "delta.tables.auto-create-enabled": "true",
            "delta.tables.evolve-schema-enabled": "true",
            "delta.control.commit.interval-ms": "1",
        }
    yield made
    made.close()


def ids(job: SinkTest) -> list[int]:
    if "delta.location" in job.settings:
        table = DeltaTable(f"{job.settings['delta.location']}/{job.name}").to_pyarrow_table(columns=["id"])
        return sorted(one for one in table["id"].to_pylist() if one is not None)
    return [one for (one,) in job.rows("SELECT id FROM T WHERE id IS NOT NULL ORDER BY 1")]


def test_names_of_fields_stop_nobody(job: SinkTest) -> None:
    """Two that are one but for their case or after byte 63, those of staging tables, quotes and NULs."""
    hostile: list[dict[str, Any]] = [
        {"id": 2, "Abc": "x", "aBC": "y"},
        {"id": 3, "ID": 4},
        {"id": 5, "n" * 70 + "1": "x", "n" * 70 + "2": "y"},
        {"id": 6, "__icestream_seq": 5, "__icestream_kind": "x"},
        {"id": 7, "a\0b": 1},
        {"id": 8, 'a"; DROP TABLE x; --': "x", "b`c": 1, "d'e": 2, "f%s": 1, "g\\": 2},
    ]
    job.produce(GOOD, *hostile, {**GOOD, "id": 9})
    job.run({})
    assert {1, 8, 9} <= set(ids(job))
    letters = [one["id"] for one in job.dead()]
    assert sorted([*ids(job), *letters]) == [1, 2, 3, 5, 6, 7, 8, 9]
    job.produce({"id": 10, "OK": "y"}, {"id": 11, "ok": "z"})
    job.run()
    assert 11 in ids(job)
    assert job.problems() == []


def test_times_of_no_calendar_stop_nobody(job: SinkTest) -> None:
    """Years beyond 9999, and a record without fields."""
    fields = {"id": "int64", "day": DAY, "at": MOMENT}
    hostile = [
        {"id": 2, "day": 2**31 - 1, "at": 0},
        {"id": 3, "day": 108_853_000, "at": 0},
        {"id": 4, "day": 0, "at": 568_971_820_800_000},
        {"id": 5, "day": 0, "at": 2**63 - 1},
    ]
    good = [{"id": 1, "day": 0, "at": 0}, {"id": 6, "day": 1, "at": 1}]
    nothing = {"schema": {"type": "struct", "fields": [], "optional": False}, "payload": {}}
    job.produce(
        *(with_schema(fields, one) for one in (good[0], *hostile)), nothing, with_schema(fields, good[1])
    )
    job.run({"value.converter.schemas.enable": "true"})
    assert {1, 6} <= set(ids(job))
    letters = [one["payload"].get("id") for one in job.dead()]
    assert sorted([*ids(job), *(one for one in letters if one)]) == [1, 2, 3, 4, 5, 6]


def test_what_a_postgresql_row_cannot_hold_is_a_dead_letter(
    broker: Broker, request: pytest.FixtureRequest
) -> None:
    """A key that no index takes, and a trigger that says no."""
    job = SinkTest(request.getfixturevalue("postgresql").settings, broker)
    job.sql(
        "CREATE TABLE T (k TEXT PRIMARY KEY, n BIGINT)",
        f"CREATE FUNCTION f_{job.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.n = 13 THEN RAISE EXCEPTION 'no 13'; END IF; RETURN NEW; END $$",
        f"CREATE TRIGGER no13 BEFORE INSERT OR UPDATE ON T FOR EACH ROW EXECUTE FUNCTION f_{job.name}()",
    )
    # Not compressible: an index holds 2,704 bytes.
    long = "".join(chr(0x4E00 + (n * n * 7919) % 20_000) for n in range(4_000))
    job.produce({"k": "a", "n": 1}, {"k": long, "n": 2}, {"k": "b", "n": 13}, {"k": "c", "n": 3})
    try:
        job.run({"pk.mode": "record_value", "pk.fields": "k", "insert.mode": "upsert"})
        assert job.rows("SELECT k, n FROM T ORDER BY 1") == [("a", 1), ("c", 3)]
        assert [json.dumps(one["n"]) for one in job.dead()] == ["2", "13"]
    finally:
        job.close()
