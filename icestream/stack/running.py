"""Parts of the stack as processes: started, found again by pid and start time, stopped. For `processes.py`.

Each part that was started has a note, `run/<part>.json`, written as soon as there is a pid. Whoever has the
folder can ask for the parts and stop them: also those of a start that was cut off.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from icestream.api.errors import PreconditionError
from icestream.embedded import ports
from icestream.embedded.process import Process, spawn
from icestream.stack.backend import PartStatus

_POLL_S: Final = 0.2
_STOP_S: Final = 30.0
_KILL_S: Final = 10.0
_ASK_S: Final = 5.0


@dataclass(frozen=True)
class Part:
    """What to start, and how to see that it works."""

    name: str
    command: Sequence[str]
    address: str
    health: str
    """An address that answers 200 when the part works."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    note: str = ""
    patience_s: float = 120.0


@dataclass(frozen=True)
class Note:
    """What `run/<part>.json` remembers; nothing secret."""

    name: str
    pid: int
    started: str
    address: str
    health: str
    note: str

    @property
    def process(self) -> Process:
        return Process(self.pid, self.started)


class Parts:
    """The parts of one folder."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._sleep = sleep

    def log(self, name: str) -> Path:
        return self._folder / "logs" / f"{name}.log"

    def notes(self) -> dict[str, Note]:
        """Of every part that was started and not stopped since, in the order of their start."""
        found = [note for file in self._run.glob("*.json") if (note := _read(file))]
        return {
            note.name: note
            for note in sorted(found, key=lambda note: (self._run / f"{note.name}.json").stat().st_mtime_ns)
        }

    def is_alive(self, name: str) -> bool:
        note = _read(self._run / f"{name}.json")
        return note is not None and note.process.is_alive()

    def launch(self, part: Part) -> None:
        """Start a part, without waiting until it works."""
        self._run.mkdir(parents=True, exist_ok=True)
        self.log(part.name).parent.mkdir(parents=True, exist_ok=True)
        process = spawn(part.command, output=self.log(part.name), environment=part.environment)
        try:
            note = Note(part.name, process.pid, process.started, part.address, part.health, part.note)
            draft = self._run / f"{part.name}.new"
            draft.write_text(json.dumps(asdict(note)) + "\n")
            draft.replace(self._run / f"{part.name}.json")
        except BaseException:
            process.send(signal.SIGKILL)
            raise

    def wait_until_healthy(self, part: Part) -> None:
        deadline = self._clock() + part.patience_s
        while not answers(part.health):
            if not self.is_alive(part.name):
                raise PreconditionError(
                    f"{part.name} ended while starting: {self._last_words(part.name)};"
                    f" see {self.log(part.name)}"
                )
            if self._clock() > deadline:
                raise PreconditionError(
                    f"{part.name} gives no answer at {part.health} after {part.patience_s:.0f} s;"
                    f" see {self.log(part.name)}"
                )
            self._sleep(_POLL_S)

    def stop(self, names: Sequence[str]) -> None:
        """Ask all of them to end, wait, and end by force what does not."""
        notes = [note for name in names if (note := _read(self._run / f"{name}.json"))]
        for note in notes:
            note.process.send(signal.SIGTERM)
        deadline = self._clock() + _STOP_S
        for note in notes:
            if not note.process.wait(max(0.0, deadline - self._clock())):
                note.process.send(signal.SIGKILL)
                note.process.wait(_KILL_S)
            (self._run / f"{note.name}.json").unlink(missing_ok=True)

    def status(self, note: Note) -> PartStatus:
        if not note.process.is_alive():
            said = f"ended: {self._last_words(note.name)}"
            return PartStatus(note.name, "stopped", "-", note.address, note.note or said)
        health = "healthy" if answers(note.health) else "unhealthy"
        return PartStatus(note.name, "running", health, note.address, note.note)

    @property
    def _run(self) -> Path:
        return self._folder / "run"

    def _last_words(self, name: str) -> str:
        try:
            lines = self.log(name).read_text(errors="replace").strip().splitlines()
        except OSError:
            return "it said nothing"
        return lines[-1].strip()[:300] if lines else "it said nothing"


def answers(address: str) -> bool:
    """Whether an address answers 200; of one without a path, whether somebody listens."""
    parts = urlsplit(address)
    if not parts.path:
        return ports.is_listening(parts.port or 0)
    connection = HTTPConnection(parts.hostname or ports.HOST, parts.port or 80, timeout=_ASK_S)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        body = answer.read(65536)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    # Trino answers before it is ready, and says so.
    return answer.status == 200 and b'"starting":true' not in body


def _read(file: Path) -> Note | None:
    try:
        return Note(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise PreconditionError(f"{file} is damaged; end the process by hand, then delete it") from None
