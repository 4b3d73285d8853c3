"""Parts as processes: real ones, small."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded import ports
from icestream.embedded.process import Process, start_mark
from icestream.stack.running import Part, Parts, answers
from icestream.stack.tail import tail


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    yield made
    made.stop(list(made.notes()))


def server(name: str, environment: dict[str, str] | None = None) -> Part:
    port = ports.free_port()
    url = f"http://{ports.HOST}:{port}"
    command = [sys.executable, "-m", "http.server", "--bind", ports.HOST, str(port)]
    return Part(name, command, url, f"{url}/", environment or {})


def test_a_part_is_found_again_by_its_folder_and_stopped(parts: Parts, tmp_path: Path) -> None:
    part = server("web")
    parts.launch(part)
    parts.wait_until_healthy(part)
    seen = Parts(tmp_path)
    note = seen.notes()["web"]
    assert seen.status(note).is_well
    seen.stop(["web"])
    assert not note.process.is_alive() and not seen.notes() and not answers(part.health)


def test_a_part_that_ends_at_once_is_told_with_its_last_words(parts: Parts) -> None:
    command = [sys.executable, "-c", "print('no license'); raise SystemExit(3)"]
    part = Part("broken", command, "http://127.0.0.1:1", "http://127.0.0.1:1/")
    parts.launch(part)
    with pytest.raises(PreconditionError, match="broken ended while starting: no license"):
        parts.wait_until_healthy(part)
    status = parts.status(parts.notes()["broken"])
    assert (status.state, status.is_well, status.note) == ("stopped", False, "ended: no license")


def test_a_process_that_got_the_pid_of_a_part_is_left_alone(parts: Parts, tmp_path: Path) -> None:
    """Our own pid under the start time of another."""
    (tmp_path / "run").mkdir()
    note = {"name": "old", "pid": os.getpid(), "started": "1", "address": "-", "health": "-", "note": ""}
    (tmp_path / "run" / "old.json").write_text(json.dumps(note))
    assert not parts.is_alive("old")
    parts.stop(["old"])
    assert start_mark(os.getpid()) is not None and not parts.notes()


def test_secrets_go_by_the_environment_and_into_no_note(parts: Parts, tmp_path: Path) -> None:
    part = Part(
        "secret",
        [sys.executable, "-c", "import os; print(len(os.environ['PASSWORD']))"],
        "http://127.0.0.1:1",
        "http://127.0.0.1:1/",
        {"PASSWORD": "s3cret"},
    )
    parts.launch(part)
    note = parts.notes()["secret"]
    assert Process(note.pid, note.started).wait(60)
    assert parts.log("secret").read_text() == "6\n"
    assert "s3cret" not in (tmp_path / "run" / "secret.json").read_text() + repr(part)


def test_logs_follow_what_is_written_later_and_begin_anew_with_the_file(tmp_path: Path) -> None:
    file, lines = tmp_path / "one.log", []
    file.write_text("first\nhal")
    steps = iter(["first\nhalf\n", "new\n"])

    def sleep(_: float) -> None:
        text = next(steps, None)
        if text is None:
            raise KeyboardInterrupt
        file.write_text(text)

    with pytest.raises(KeyboardInterrupt):
        tail({"one": file}, True, lines.append, sleep)
    assert lines == ["first", "half", "new"]
