"""The fixture that fails tests which leave something behind, and the random order of tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEAKY = """
import asyncio, logging, os, subprocess, sys, threading, time
import pytest
from tests.kit import leaks

leaks._PATIENCE = 0.3
END, LATER = threading.Event(), threading.Event()
KEPT = []

def begin(wait=END, name=None):
    thread = threading.Thread(target=wait.wait, name=name)
    thread.start()
    return thread

@pytest.fixture(scope="session")
def whole_run():
    # The threads that this one starts, in whichever test, are its own.
    ask = threading.Event()
    def serve():
        ask.wait()
        begin()
        END.wait()
    thread = threading.Thread(target=serve)
    thread.start()
    yield ask
    END.set()
    thread.join()

@pytest.fixture(scope="module")
def good():
    thread = begin(LATER)
    os.environ["OF_GOOD"] = "1"
    yield
    del os.environ["OF_GOOD"]
    LATER.set()
    thread.join()

@pytest.fixture(scope="module")
def bad():
    os.environ["OF_BAD"] = "1"

@pytest.fixture
def cleaned(monkeypatch):
    monkeypatch.setenv("OF_A_TEST", "1")
    thread, ended = threading.Thread(target=time.sleep, args=[0.1]), begin(over := threading.Event())
    thread.start()
    yield
    over.set()

def test_clean(cleaned): pass
def test_fixtures_that_a_test_asks_for_first(request):
    request.getfixturevalue("bad")
    request.getfixturevalue("good")
    request.getfixturevalue("whole_run").set()
def test_shared():
    with leaks.shared():
        begin()
def test_thread(): KEPT.append(begin(name="of-a-test"))
def test_child(): KEPT.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
def test_variables():
    os.environ["NEW"] = "1"
    del os.environ["GIVEN"]
def test_the_one_after_it(): assert "NEW" not in os.environ and os.environ["GIVEN"] == "1"
def test_handler(): logging.getLogger("some.logger").addHandler(logging.StreamHandler())
def test_loop():
    loop = asyncio.new_event_loop()
    asyncio._set_running_loop(loop)
def test_end():
    asyncio.get_running_loop().close()
    asyncio._set_running_loop(None)
    KEPT[1].kill()
    KEPT[1].wait()
"""
NUMBERS = "\n".join(f"def test_{number}(): pass" for number in range(20))


def run(folder: Path, plugin: str, *arguments: str, **files: str) -> str:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-v", *arguments, "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GIVEN": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    ).stdout


def test_what_a_test_leaves_behind_fails_it(tmp_path: Path) -> None:
    said = run(tmp_path, "tests.kit.leaks", "-rE", a=LEAKY)
    failed = re.findall(r"^ERROR test_a\.py::test_(\w+) - ", said, re.MULTILINE)
    assert failed == ["thread", "child", "variables", "handler", "loop", "end"], said
    assert re.search(
        r"the thread 'of-a-test' \(not a daemon, started by 'MainThread' at .*test_a\.py:\d+\)", said
    )
    assert re.search(r"the process \d+ \(.*time\.sleep\(60\)\), which runs", said)
    assert "the variable NEW, which is '1'" in said and "the variable GIVEN, which is removed" in said
    assert re.search(r"the log handler <StreamHandler .*> of 'some\.logger'", said)
    assert "the running event loop <" in said
    assert "the fixture 'bad' left behind:\n  the variable OF_BAD, which is '1'" in said
    assert "10 passed, 6 errors" in said


def order(said: str) -> list[str]:
    return re.findall(r"^test_(\w+)\.py::test_(\d+) PASSED", said, re.MULTILINE)


def test_the_order_is_random_and_its_seed_gives_it_again(tmp_path: Path) -> None:
    files = {"a": NUMBERS, "b": NUMBERS}
    first = run(tmp_path, "tests.kit.order", **files)
    (seed,) = re.findall(r"^order of the tests: --order-seed=(\d+)$", first, re.MULTILINE)
    assert order(run(tmp_path, "tests.kit.order", f"--order-seed={seed}", "-k", "_1", **files)) == [
        one for one in order(first) if one[1].startswith("1")
    ]
    collected = order(run(tmp_path, "tests.kit.order", "--order-seed=none", **files))
    assert collected == [(file, str(number)) for file in files for number in range(20)]
    assert order(first) != collected
    # The tests of a file stay together, so that what they share is there once.
    assert [file for file, _ in order(first)] in (["a"] * 20 + ["b"] * 20, ["b"] * 20 + ["a"] * 20)
