"""The parts of `make bench-sinks` that need no servers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from bench import page
from bench.sinks import report, rows
from bench.sinks.databases import DrainOptions, DrainRun
from bench.sinks.objects import Folder, RateOptions, RateRun, count_records
from bench.worker import RunFailed


def lines(*numbers: int) -> bytes:
    return gzip.compress(b"".join(b'{"api":1,"requestID":"%016X"}\n' % number for number in numbers))


def test_each_record_is_seen_when_its_object_is() -> None:
    seen = np.full(4, np.nan)
    count_records(seen, lines(0, 2), 7.0, "a")
    count_records(seen, lines(3), 9.0, "b")
    assert seen.tolist()[:1] + seen.tolist()[2:] == [7.0, 7.0, 9.0]
    assert np.isnan(seen[1])


@pytest.mark.parametrize("second", [(1, 1), (0,)])
def test_a_record_that_is_there_twice_makes_the_run_void(second: tuple[int, ...]) -> None:
    seen = np.full(4, np.nan)
    count_records(seen, lines(0), 7.0, "a")
    with pytest.raises(RunFailed, match="counts for nothing"):
        count_records(seen, lines(*second), 9.0, "b")


def test_objects_under_way_and_notes_of_a_job_are_no_data(tmp_path: Path) -> None:
    for name in ("topics/a.json.gz", "topics/.b.json.gz", "_ledger/c.json.gz", "topics/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert Folder(tmp_path).names() == {"topics/a.json.gz"}


def test_records_have_the_columns_of_the_table() -> None:
    found = [json.loads(value) for value in rows.records(6)]
    assert [one["payload"]["id"] for one in found] == list(range(6))
    assert [one["payload"]["version"] for one in found] == list(range(6))
    assert tuple(found[0]["payload"]) == rows.COLUMNS
    assert [field["field"] for field in found[0]["schema"]["fields"]] == list(rows.COLUMNS)
    assert all(f'"{name}"' in rows.create_table("t", key="id") for name in rows.COLUMNS)


def test_the_page_has_medians_by_case_and_side() -> None:
    drains = [
        DrainRun("upsert", side, 1000, seconds, 1.0, 100, 0.1)
        for side, seconds in (("peer", 1.0), ("ours", 0.5), ("ours", 0.25), ("ours", 0.1), ("peer", 2.0))
    ]
    rates = [RateRun("s3", "ours", 35_000, 10, 10, 5_000, 9_000, 9_500, 1.0, 18.0, 900, 12, 0.0)]
    outcome = report.Outcome(rates, drains, RateOptions(35_000, 40, 15, 10), DrainOptions(1, 1))
    text = report.section(json.loads(json.dumps(report.as_json(outcome))))
    assert "medians of 3 rounds; others used up to 10% of the machine" in text
    assert "| JDBC sink, upsert of 10 columns | Icestream | 1,000 | 4,000 | 1000.0 | 100 |" in text
    assert "| plain loop | 1,000 | 750 |" in text
    assert (
        "| JSON Lines, gzip, to S3 (moto) | Icestream | 35,000 | 5,000 | 9,000 | 1.0 | 18.0 | 900 | 12 |"
        in text
    )


def test_the_page_shows_the_results_file() -> None:
    shown = page.PAGE.read_text()
    assert page.with_section(shown, "sinks", report.section(json.loads(report.RESULTS.read_text()))) == shown
