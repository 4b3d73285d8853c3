"""Numbers of the process with its children, and of REST's requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from icestream.metrics import catalog
from icestream.metrics.facts import WorkerFacts
from icestream.metrics.processes import ProcessFamilies, processes
from icestream.metrics.requests import RequestCounts

FACTS = WorkerFacts(0.0)


def numbers(families: ProcessFamilies) -> dict[str, float]:
    return {sample.name: sample.value for family in families(FACTS) for sample in family.samples}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc; run it on Linux")
def test_children_and_their_children_count() -> None:
    grandchild = "import sys; print('up', flush=True); sys.stdin.read()"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    families = ProcessFamilies()
    before = numbers(families)
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        during = numbers(families)
        assert process.stdin is not None
        process.stdin.close()
    assert during["icestream_process_children"] >= before["icestream_process_children"] + 2
    assert during["process_resident_memory_bytes"] > before["process_resident_memory_bytes"]
    after = numbers(families)
    assert after["process_cpu_seconds_total"] >= during["process_cpu_seconds_total"] > 0
    assert set(after) == {
        metric.name
        for metric in catalog.METRICS
        if metric.part is catalog.Part.PROCESS and not metric.name.startswith("jvm_")
    }
    assert 0 < after["process_open_fds"] <= after["process_max_fds"]
    started = os.stat("/proc/self").st_ctime
    assert abs(after["process_start_time_seconds"] - started) < 3600 * 24


def test_without_proc_nothing_is_told(tmp_path: Path) -> None:
    assert processes(tmp_path / "none") == {}
    assert numbers(ProcessFamilies(proc=tmp_path)) == {}


def test_programs_with_odd_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(
        "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 3 4 5 6 20 0 9 0 100 2048 12 0\n"
    )
    found = processes(tmp_path)[7]
    assert (found.parent, found.ticks, found.threads, found.virtual, found.resident_pages) == (
        *(1, 18, 9),
        *(2048, 12),
    )


def test_requests_are_counted_by_template() -> None:
    counts = RequestCounts()
    counts.add("GET", "/connectors/{connector}/status", 200, 0.003)
    counts.add("GET", "/connectors/{connector}/status", 404, 0.3)
    counts.add("HACK", "other", 405, 0.001)
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in counts.families(FACTS)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }
    status = ("method", "GET"), ("route", "/connectors/{connector}/status")
    assert found["icestream_rest_requests_total", (("code", "404"), *status)] == 1
    assert found["icestream_rest_request_duration_seconds_count", status] == 2
    assert (
        found["icestream_rest_requests_total", (("code", "405"), ("method", "other"), ("route", "other"))]
        == 1
    )
