from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench import picture, report, screen
from bench.one_record import Latency
from bench.profile import ThreadTimes, parse_stat, thread_kind
from bench.rounds import Drained, checked, in_turn
from bench.sides import Side
from bench.table import Content, wait_for_rows
from bench.worker import RunFailed, failures

ONCE = Content(rows=1_000_000, distinct=1_000_000, files=30, commits=4)


def run(side: str, number: int, seconds: float, cpu: float = 40.0, memory: int = 2**30) -> Drained:
    return Drained(side, number, 1_000_000, seconds, 5.0, cpu, memory, 3, 6.0, 0.01, ONCE)


RUNS = [
    run("ours", 1, 10.0, 20.0, 3 * 2**29),
    run("theirs", 1, 30.0, 50.0),
    run("theirs", 2, 50.0, 60.0),
    run("ours", 2, 10.0, 24.0),
    run("ours", 3, 20.0, 25.0),
    run("theirs", 3, 20.0, 50.0),
]


def outcome(runs: Sequence[Drained] = RUNS, latency: Latency | None = None) -> report.Outcome:
    machine = {"cores": 2, "memory_gb": 8, "cpu": "a processor", "system": "Linux"}
    return report.Outcome(runs, latency, 863.4, True, machine, {"icestream": "0.1.0"}, "2026-11-15")


def test_ratios_compare_runs_of_the_same_round() -> None:
    assert report.ratios(RUNS, lambda each: each.rate) == pytest.approx([3.0, 5.0, 1.0])
    assert report.median_ratios(RUNS) == {"drain": 3.0, "cpu": 0.4, "memory": 1.0}


def test_a_round_with_one_side_has_no_ratio() -> None:
    assert report.median_ratios([run("ours", 1, 10.0)]) == {}


def test_the_results_file_has_the_promised_figures() -> None:
    written = json.loads(json.dumps(report.as_json(outcome(latency=Latency([300.0, 310.0, 900.0])))))
    assert written["ratio"]["drain"] == 3.0
    assert written["one_record_ms"] == 310.0
    assert written["versions"]["icestream"] == "0.1.0"
    assert written["machine"]["cores"] == 2
    assert written["runs"][0]["records_per_second"] == 100_000
    assert written["runs"][0]["rows"] == 1_000_000
    assert written["disturbed_runs"] == 0


def test_the_screen_shows_ratios_latency_and_who_was_disturbed() -> None:
    console = Console(record=True, width=100, file=None, quiet=False)
    noisy = [replace(RUNS[0], foreign_share=0.4), *RUNS[1:]]
    with console.capture() as shown:
        screen.show(outcome(noisy, Latency([300.0, 310.0, 900.0])), console)
    text = shown.get()
    assert "3.00" in text
    assert "310 ms in the median of 3" in text
    assert "round 1, ours: others used 40% of the machine" in text


def test_the_screen_shows_a_profile() -> None:
    console = Console(width=100)
    profiled = replace(RUNS[0], threads=[ThreadTimes("python", "rdk:broker", 2, 3.25)])
    with console.capture() as shown:
        screen.show_profile(profiled, console)
    assert "rdk:broker" in shown.get()


def test_the_picture_is_a_small_svg_that_is_the_same_for_the_same_figures(tmp_path: Path) -> None:
    picture.draw(outcome(), tmp_path / "a.svg")
    picture.draw(outcome(), tmp_path / "b.svg")
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes()
    assert b"Icestream" in first
    assert len(first) < 40_000


def test_sides_take_turns_in_going_first() -> None:
    sides = [Side("ours", "", lambda _: []), Side("theirs", "", lambda _: [])]
    order = [(number, side.name) for number, side in in_turn(sides, 2)]
    assert order == [(1, "ours"), (1, "theirs"), (2, "theirs"), (2, "ours")]


@pytest.mark.parametrize("content", [replace(ONCE, rows=999_999), replace(ONCE, distinct=999_999)])
def test_a_run_that_lost_or_repeated_a_record_does_not_count(content: Content) -> None:
    with pytest.raises(RunFailed, match="counts for nothing"):
        checked(content, 1_000_000, "A side")


def test_waiting_ends_when_nothing_is_added_any_more() -> None:
    now = [0.0]
    seen = iter([0, 10, 10, 20])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    rows = wait_for_rows(
        lambda: next(seen, 20), 30, clock=lambda: now[0], sleep=sleep, every_s=1.0, patience_s=5.0
    )
    assert rows == 20
    assert now[0] == 8.0


def test_failures_are_the_traces_of_connector_and_tasks() -> None:
    tasks = [{"state": "RUNNING"}, {"state": "FAILED", "trace": "no such table"}]
    assert failures({"connector": {"state": "RUNNING"}, "tasks": tasks}) == ["no such table"]


def test_a_thread_name_may_hold_parentheses_and_spaces() -> None:
    name, seconds = parse_stat("7 (GC (a) 1) S 1 " + " ".join("0" for _ in range(9)) + " 150 50 0 0")
    assert name == "GC (a) 1"
    assert seconds == pytest.approx(2.0, rel=0.01)
    assert thread_kind("GC Thread#1") == "GC Thread"
