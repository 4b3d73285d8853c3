"""The demo, as a newcomer runs it, only smaller."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DEMO = [sys.executable, "-m", "icestream.cli.main", "demo"]


def processes_mentioning(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found


def test_the_demo_ends_with_the_proof_and_leaves_nothing_behind(demo_home: Path) -> None:
    ran = subprocess.run(
        [*DEMO, "--records", "3000", "--bad", "9"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "ICESTREAM_HOME": str(demo_home)},
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert ran.stdout.count("None missing, none twice.") == 3
    assert "1,800 in the topic, 1,797 in the table, 3 in the dead letter queue." in ran.stdout
    assert "sql> SHOW TABLES FROM kafkawarehouse.streaming" in ran.stdout
    assert processes_mentioning(str(demo_home / "demo")) == []
    assert not (demo_home / "demo").exists()


def test_ctrl_c_ends_the_demo_at_once_and_leaves_nothing_behind(demo_home: Path) -> None:
    # A process that a script started in the background ignores Ctrl-C, and so would its child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    running = subprocess.Popen(
        DEMO,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ICESTREAM_HOME": str(demo_home)},
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    try:
        deadline = time.monotonic() + 180
        while not processes_mentioning(str(demo_home / "demo" / "worker.properties")):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=120) == 130
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    assert processes_mentioning(str(demo_home / "demo")) == []
