"""`icestream table`: finds the table by its connector, says what it does, and does it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.connectors.iceberg.maintained import Job, catalog_config, data_files, loaded, new_catalog


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The file of a connector whose table has six small files."""
    catalog = new_catalog(tmp_path)
    job = Job(catalog, "sink")
    for _ in range(6):
        job.commit()
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": "sink", "config": catalog_config(tmp_path)}))
    return file


def test_a_table_is_compacted_expired_cleaned_and_shown(bare_cli: Any, config: Path, tmp_path: Path) -> None:
    def table(*arguments: str) -> Any:
        verb, *rest = arguments
        ran = bare_cli("table", verb, "ns.t", "--config", str(config), *rest)
        assert ran.code == 0, ran.err
        return ran

    said = table("compact", "--dry-run", "--min-files", "3")
    assert said.out.startswith("compaction: 6 data files would be 1; 6 files with 60 rows become 1 (")
    assert data_files(new_catalog(tmp_path)) == 6
    said = table("compact")
    assert said.rows[0].startswith("compaction: 6 data files, nothing to do (")
    said = table("compact", "--min-files", "3")
    assert said.rows[0].startswith("compaction: 6 data files are now 1; 6 files with 60 rows become 1 (")
    assert said.rows[1].startswith("manifests: ")

    rows = table("history").rows
    assert rows[0] == "time snapshot operation by files rows all files all rows names"
    assert len(rows) == 8
    assert " append connector sink +1 +10 1 10" in rows[1]
    assert rows[-1].endswith("replace maintenance: compaction +1 -6 +60 -60 1 60 main")
    assert len(table("history", "--last", "2").rows) == 3
    (entry,) = json.loads(table("history", "--last", "1", "-o", "json").out)
    assert (entry["by"], entry["names"]) == ("maintenance: compaction", ["main"])

    said = table("expire", "--older-than", "0s", "--retain-last", "1", "--dry-run")
    assert said.out.startswith("expiry: 7 snapshots would be 1; 18 files would be removed (")
    said = table("expire", "--older-than", "0s", "--retain-last", "1", "-o", "json")
    (step,) = json.loads(said.out)["steps"]
    assert (step["before"], step["after"], step["removed_files"]) == (7, 1, 18)
    assert len(loaded(new_catalog(tmp_path)).metadata.snapshots) == 1
    assert table("orphans").out.startswith("orphans: 0 orphans, nothing to do (")
    Job(new_catalog(tmp_path), "sink").proves(60)


def test_what_cannot_be_is_said_in_one_sentence(bare_cli: Any, config: Path) -> None:
    def refused(*arguments: str) -> str:
        ran = bare_cli("table", *arguments, "--config", str(config))
        assert ran.code in (1, 2)
        text: str = ran.err
        return text

    assert refused("compact", "ns.other") == (
        "icestream: table 'ns.other' is not in its catalog; check its name\n"
    )
    assert "may be of a commit that is under way" in refused("orphans", "ns.t", "--older-than", "2h")
    assert "'soon' is not a time; write 5d" in refused("expire", "ns.t", "--older-than", "soon")
    assert "'x' is not of the form key=value" in refused("history", "ns.t", "--set", "x")
    file_sink = "connector.class=FileStreamSink"
    assert "maintains no tables; name another connector" in refused("history", "ns.t", "--set", file_sink)


def test_the_connector_is_found_at_the_worker_or_given_by_flags(
    cli: Any, worker: Any, config: Path, tmp_path: Path
) -> None:
    ran = cli("table", "history", "ns.t")
    assert (ran.code, ran.err) == (
        1,
        f"icestream: no connector at {worker.url} names the table 'ns.t'; name one with --connector or "
        "--config\n",
    )
    keys = catalog_config(tmp_path)
    worker.create("one", **keys)
    assert len(cli("table", "history", "ns.t").rows) == 7
    worker.create("two", **keys)
    assert "one, two name the table 'ns.t'; choose one" in cli("table", "history", "ns.t").err
    assert len(cli("table", "history", "ns.t", "--connector", "two").rows) == 7
    flags = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
    assert len(cli("table", "history", "ns.t", *flags).rows) == 7
