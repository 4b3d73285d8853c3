from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bench.usage import CpuCounter, Key, Times, TreeMeter

PARENT = Key(1, 10.0)
CHILD = Key(2, 20.0)


def test_adds_up_the_own_time_of_every_process() -> None:
    counter = CpuCounter()
    counter.add({PARENT: Times(1.0, 0.0)})
    counter.add({PARENT: Times(1.5, 0.0), CHILD: Times(2.0, 0.0)})
    assert counter.seconds == pytest.approx(3.5)


def test_counts_the_last_moments_of_a_child_that_was_waited_for() -> None:
    counter = CpuCounter()
    counter.add({PARENT: Times(1.0, 0.0), CHILD: Times(2.0, 0.0)})
    counter.add({PARENT: Times(1.0, 2.4)})
    assert counter.seconds == pytest.approx(3.4)


def test_counts_a_child_that_lived_between_two_samples() -> None:
    counter = CpuCounter()
    counter.add({PARENT: Times(1.0, 0.0)})
    counter.add({PARENT: Times(1.0, 0.7)})
    assert counter.seconds == pytest.approx(1.7)


def test_does_not_lose_a_child_that_nobody_waited_for() -> None:
    counter = CpuCounter()
    counter.add({PARENT: Times(1.0, 0.0), CHILD: Times(2.0, 0.0)})
    counter.add({PARENT: Times(1.5, 0.0)})
    assert counter.seconds == pytest.approx(3.5)


def test_a_new_process_with_an_old_pid_is_another_process() -> None:
    counter = CpuCounter()
    counter.add({PARENT: Times(0.0, 0.0), CHILD: Times(5.0, 0.0)})
    counter.add({PARENT: Times(0.0, 5.0), Key(2, 99.0): Times(1.0, 0.0)})
    assert counter.seconds == pytest.approx(6.0)


def test_measures_a_real_tree_with_a_dead_grandchild() -> None:
    burn = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    script = (
        "import subprocess, sys, time\n"
        f"subprocess.run([sys.executable, '-c', {burn!r}])\n"
        "print('done', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        with TreeMeter(process.pid) as meter:
            meter.mark()
            assert process.stdout is not None
            process.stdout.readline()
            usage = meter.read()
            assert len(meter.living()) == 1
    finally:
        process.kill()
        process.communicate()
    assert 0.35 < usage.cpu_seconds < 2.0
    assert 1_000_000 < usage.peak_memory_bytes < 200_000_000


def test_finds_processes_whose_parent_has_died() -> None:
    script = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "inner = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)\n"
        "print(inner.pid, flush=True); sys.stdin.readline()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    with TreeMeter(process.pid) as meter:
        meter.mark()
        process.communicate("end\n")
        time.sleep(0.1)
        left = meter.living()
    assert [found.pid for found in left] == [orphan]
    left[0].kill()
