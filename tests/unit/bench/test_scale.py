from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench import page, scale, steady
from bench.kafka_meter import RequestCounter
from bench.scale import Idle, lines
from bench.steady_load import Sent, halves, number_of, request_id
from icestream.embedded.minio_logs import generate

IDLE = Idle(
    connectors=1000,
    healthy_seconds=20.0,
    ready_seconds=50.0,
    cpu_percent=6.2,
    memory_mb=1500,
    threads=1100,
    connections=40,
    kafka_connections=6,
    kafka_requests={"ListOffsets": 4.0},
    kafka_requests_a_second=4.4,
    catalog_statements_a_second=0.0,
    record_ms=[500.0, 700.0, 600.0],
    foreign_share=0.0,
)


def request(kind: int, length: int) -> bytes:
    return struct.pack(">ih", length, kind) + bytes(length - 2)


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_requests_are_counted_however_the_bytes_are_cut(piece: int) -> None:
    counts: Counter[str] = Counter()
    counter = RequestCounter(counts)
    stream = request(2, 40) + request(3, 2) + request(2, 11) + request(99, 5)
    for at in range(0, len(stream), piece):
        counter.feed(stream[at : at + piece])
    assert counts == {"ListOffsets": 2, "Metadata": 1, "99": 1}


def test_a_record_of_the_load_is_told_by_its_number() -> None:
    record = next(generate("api", 1))
    before, after = halves(record)
    changed = json.loads(before + request_id(255) + after)
    assert number_of(changed["callInfo"]["requestID"]) == 255
    assert changed.keys() == json.loads(record).keys()


def test_the_times_of_records_are_those_of_their_ticks(tmp_path: Path) -> None:
    file = tmp_path / "sent"
    file.write_bytes(struct.pack("=dqdq", 1.5, 2, 1.75, 3))
    assert list(Sent.read(file).times()) == [1.5, 1.5, 1.75]


def test_the_lines_of_the_page_have_goals() -> None:
    shown = {label: (cells, goal) for label, cells, goal in lines([IDLE])}
    assert shown["CPU, % of one core"] == (["6.2"], "< 10")
    assert shown["one record to its row, ms (median, worst)"] == (["600, 700"], "< 3,000")


@pytest.mark.parametrize(
    ("name", "results", "section"),
    [("scale", scale.RESULTS, scale.section), ("steady", steady.RESULTS, steady.section)],
)
def test_the_page_says_what_the_results_say(
    name: str, results: Path, section: Callable[[Mapping[str, Any]], str]
) -> None:
    text = page.PAGE.read_text()
    assert page.with_section(text, name, section(json.loads(results.read_text()))) == text


def test_results_can_be_written_down() -> None:
    assert json.loads(json.dumps(asdict(IDLE)))["connectors"] == 1000
