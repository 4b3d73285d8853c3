"""The records: deterministic, unique, of the documented shape; the broken ones where they are expected."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from icestream.embedded.minio_logs import BASE, bad_positions, generate, request_id

ID_OF: dict[str, Callable[[dict[str, Any]], str]] = {
    "api": lambda record: record["callInfo"]["requestID"],
    "error": lambda record: record["tags"]["requestID"],
    "audit": lambda record: record["requestID"],
}
every_kind = pytest.mark.parametrize("kind", list(ID_OF))


def parsed(kind: str, count: int, seed: int = 1) -> list[dict[str, Any]]:
    return [json.loads(record) for record in generate(kind, count, seed)]


@every_kind
def test_the_same_seed_gives_the_same_bytes_from_any_start(kind: str) -> None:
    whole = list(generate(kind, 300, seed=5))
    assert list(generate(kind, 100, seed=5, start=200)) == whole[200:]
    assert list(generate(kind, 300, seed=6)) != whole


@every_kind
def test_every_record_has_an_id_that_can_be_computed(kind: str) -> None:
    ids = [ID_OF[kind](record) for record in parsed(kind, 2000)]
    assert ids == [request_id(1, index) for index in range(2000)]
    assert len(set(ids)) == 2000


@every_kind
def test_times_run_through_the_two_days_before_the_base(kind: str) -> None:
    times = [datetime.fromisoformat(record["time"]) for record in parsed(kind, 500)]
    assert times == sorted(times)
    assert BASE - timedelta(days=2) <= times[0] and times[-1] < BASE
    (moved,) = generate(kind, 1, base=datetime(2030, 1, 3, tzinfo=UTC))
    assert json.loads(moved)["time"].startswith("2030-01-01T00:00:00.")


def test_api_logs_weigh_about_860_bytes_in_few_buckets() -> None:
    sizes = [len(record) for record in generate("api", 5000)]
    assert 845 < sum(sizes) / len(sizes) < 875
    assert len({record.get("bucket") for record in parsed("api", 5000)}) == 9


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        *[("api", field) for field in ("bucket", "object", "versionId", "tags")],
        *[("error", field) for field in ("trace",)],
        *[("audit", field) for field in ("bucket", "tags", "requestClaims", "parentUser", "details")],
    ],
)
def test_optional_fields_are_sometimes_left_out_and_never_empty(kind: str, field: str) -> None:
    records = parsed(kind, 1000)
    present = [record[field] for record in records if field in record]
    assert 0 < len(present) < len(records)
    assert all(present)


def test_details_of_the_audit_log_are_json_in_a_string() -> None:
    details = [record["details"] for record in parsed("audit", 200) if "details" in record]
    assert all(isinstance(text, str) and isinstance(json.loads(text), dict) for text in details)


def test_bad_positions_are_even_and_exact() -> None:
    assert bad_positions(100, 0) == []
    assert bad_positions(100, 5) == [10, 30, 50, 70, 90]
    assert bad_positions(3, 3) == [0, 1, 2]
    with pytest.raises(ValueError, match="4 of 3 records cannot be bad"):
        bad_positions(3, 4)


@every_kind
def test_broken_records_replace_good_ones_in_five_ways(kind: str) -> None:
    good = list(generate(kind, 100))
    mixed = list(generate(kind, 100, bad=5))
    different = [index for index in range(100) if good[index] != mixed[index]]
    assert different == bad_positions(100, 5)
    cut, not_text, not_an_object, empty, wrong_type = (mixed[index] for index in different)
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut)
    with pytest.raises(UnicodeDecodeError):
        not_text.decode()
    assert isinstance(json.loads(not_an_object), list)
    assert empty == b""
    assert isinstance(json.loads(wrong_type), dict)
