"""Background processes: found by pid and start time, and killed with their parent if that is asked."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icestream.embedded import ports
from icestream.embedded.process import Process, spawn, start_mark

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_process_lives_until_it_is_told_to_end(tmp_path: Path) -> None:
    process = spawn(SLEEP, output=tmp_path / "log")
    assert process.is_alive()
    process.send(signal.SIGTERM)
    assert process.wait(60)
    assert not process.is_alive()
    process.send(signal.SIGTERM)


def test_a_recycled_pid_is_not_taken_for_the_old_process(tmp_path: Path) -> None:
    process = spawn(SLEEP, output=tmp_path / "log")
    try:
        assert not Process(process.pid, "another start").is_alive()
    finally:
        process.send(signal.SIGKILL)
        process.wait(60)


def test_output_goes_to_the_file(tmp_path: Path) -> None:
    process = spawn([sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"],
                    output=tmp_path / "log")  # fmt: skip
    assert process.wait(60)
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_dies_with_its_parent_even_if_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from icestream.embedded.process import spawn\n"
        "process = spawn([sys.executable, '-c', 'import time; time.sleep(60)'], output=Path(sys.argv[1]),"
        " die_with_parent=True)\n"
        "print(process.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        mark = start_mark(child)
        time.sleep(0.3)
        assert mark and start_mark(child) == mark
        parent.kill()
    assert Process(child, mark).wait(60)


def test_a_taken_port_is_not_free() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        taken = server.getsockname()[1]
        assert not ports.is_free(taken)
        assert ports.is_listening(taken)
    port = ports.free_port()
    assert ports.is_free(port)
    assert ports.free_port(avoid=port) != port


def test_a_port_is_not_given_again_before_somebody_listens_there() -> None:
    given = [ports.free_port() for _ in range(5)]
    assert len(set(given)) == 5
