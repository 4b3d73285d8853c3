"""The stack as processes on this machine, where there is no Docker: one back end of `icestream stack`.

Everything is under one folder: `data/` what parts keep, `logs/`, `run/` notes of processes, and `stack.json`
with the ports and addresses of the last start.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import PreconditionError
from icestream.embedded import kafka, ports
from icestream.embedded.home import home
from icestream.stack.backend import Endpoints, PartStatus, Say
from icestream.stack.plan import Plan, find_programs
from icestream.stack.running import Part, Parts
from icestream.stack.settings import Settings
from icestream.stack.tail import tail

KAFKA: Final = "kafka"


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`$ICESTREAM_STACK_FOLDER`, for a second stack beside the first, or `stack` in our home folder."""
    chosen = environ.get("ICESTREAM_STACK_FOLDER")
    return Path(chosen).expanduser().absolute() if chosen else home() / "stack"


@dataclass(frozen=True)
class Wishes:
    """What the user asked of a start."""

    with_trino: bool = True
    builds_minio: bool = False
    sends_audit: bool = False
    stand_in: bool = False
    """Moto even where MinIO is."""


class ProcessBackend:
    """Parts as processes; see `Backend`."""

    name = "processes"

    def __init__(
        self,
        settings: Settings,
        wishes: Wishes | None = None,
        folder: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._wishes = wishes or Wishes()
        self._folder = folder or default_folder()
        self._parts = Parts(self._folder, sleep=sleep)
        self._sleep = sleep

    def start(self, say: Say) -> Endpoints:
        with self._alone("start"):
            kept = self._read() if self._runs() else None
            if kept is not None and self._is_complete(kept):
                say("the stack runs already; its steps are looked at once more")
                return Endpoints(**kept["endpoints"])
            programs = find_programs(self._completing(kept), say)
            plan = Plan.make(self._settings, programs, self._folder, self._ports(kept))
            if programs.minio is None and kept is None:
                # What moto had is gone with its process: what others remember of it must go, too.
                self._remove_data()
            return self._start(plan, say)

    def _is_complete(self, kept: Mapping[str, Any]) -> bool:
        lacks_trino = self._wishes.with_trino and "trino" not in [*kept["parts"], *kept["absent"]]
        return not lacks_trino and all(self._is_alive(name) for name in kept["parts"])

    def _completing(self, kept: Mapping[str, Any] | None) -> Wishes:
        """The wishes, but a stack that runs keeps the storage and the Trino that it has."""
        if kept is None:
            return self._wishes
        return replace(
            self._wishes,
            stand_in=any(name.startswith("moto-") for name in kept["parts"]),
            with_trino=self._wishes.with_trino or "trino" in kept["parts"],
        )

    def _start(self, plan: Plan, say: Say) -> Endpoints:
        started: list[str] = []
        try:
            self._write(plan)
            for stage in plan.stages():
                missing = [part for part in stage if not self._is_alive(part.name)]
                if missing:
                    say(f"starting {', '.join(part.name for part in missing)}")
                for part in missing:
                    started.append(part.name)
                    self._launch(part)
                for part in missing:
                    if part.name != KAFKA:
                        self._parts.wait_until_healthy(part)
        except BaseException:
            say("stopping what has been started")
            self._stop(list(reversed(started)))
            if not self._runs():
                self._state.unlink(missing_ok=True)
            raise
        return plan.endpoints

    def stop(self, say: Say) -> bool:
        with self._alone("stop"):
            return self._stop_all(say)

    def _stop_all(self, say: Say) -> bool:
        names = [*reversed(self._parts.notes()), KAFKA]
        running = [name for name in names if self._is_alive(name)]
        if running:
            say(f"stopping {', '.join(running)}")
        self._stop(names)
        return bool(running)

    def clean(self, say: Say) -> None:
        with self._alone("clean"):
            self._stop_all(say)
            for name in ("data", "logs", "run"):
                shutil.rmtree(self._folder / name, ignore_errors=True)
            self._state.unlink(missing_ok=True)
            say(f"removed the data and the logs in {self._folder}")

    def status(self) -> Sequence[PartStatus]:
        state, notes = self._read() or {}, self._parts.notes()
        found = []
        for name in state.get("parts", [KAFKA]):
            if name == KAFKA:
                found.append(self._kafka_status())
            elif name in notes:
                found.append(self._parts.status(notes[name]))
            else:
                found.append(PartStatus(name, "stopped", "-"))
        absent: Mapping[str, str] = state.get("absent", {})
        return [*found, *(PartStatus(name, "absent", "-", note=why) for name, why in absent.items())]

    def endpoints(self) -> Endpoints | None:
        state = self._read()
        return Endpoints(**state["endpoints"]) if state and self._runs() else None

    def logs(self, part: str | None, follow: bool, write: Say) -> None:
        files = {file.stem: file for file in sorted((self._folder / "logs").glob("*.log"))}
        if (broker := self._folder / "data" / "kafka" / "server.log").exists():
            files[KAFKA] = broker
        if not files:
            raise PreconditionError("there are no logs; start the stack with: icestream stack start")
        if part is not None:
            if part not in files:
                known = ", ".join(sorted(files))
                raise PreconditionError(f"there is no log of '{part}'; there are: {known}")
            files = {part: files[part]}
        tail(files, follow, write, self._sleep)

    # Parts

    def _launch(self, part: Part) -> None:
        if part.name == KAFKA:
            kafka.start(self._kafka_data, int(part.address.rpartition(":")[2]))
        else:
            self._parts.launch(part)

    def _stop(self, names: Sequence[str]) -> None:
        self._parts.stop([name for name in names if name != KAFKA])
        # Last: the worker says good-bye to it.
        if KAFKA in names:
            kafka.stop(self._kafka_data)

    def _is_alive(self, name: str) -> bool:
        return kafka.status(self._kafka_data) is not None if name == KAFKA else self._parts.is_alive(name)

    def _runs(self) -> bool:
        return any(self._is_alive(name) for name in [KAFKA, *self._parts.notes()])

    def _kafka_status(self) -> PartStatus:
        broker = kafka.status(self._kafka_data)
        if broker is None:
            return PartStatus(KAFKA, "stopped", "-")
        health = "healthy" if ports.is_listening(broker.port) else "unhealthy"
        return PartStatus(KAFKA, "running", health, broker.bootstrap)

    # Files

    @property
    def _kafka_data(self) -> Path:
        return self._folder / "data" / "kafka"

    @property
    def _state(self) -> Path:
        return self._folder / "stack.json"

    def _read(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._state.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise PreconditionError(
                f"{self._state} is damaged; delete it, then run `icestream stack clean`"
            ) from None
        return found

    def _write(self, plan: Plan) -> None:
        content = {
            "parts": [part.name for stage in plan.stages() for part in stage],
            "absent": plan.absent,
            "ports": plan.ports,
            "endpoints": asdict(plan.endpoints),
        }
        draft = self._state.with_suffix(".new")
        draft.write_text(json.dumps(content, indent=1) + "\n")
        draft.replace(self._state)

    def _remove_data(self) -> None:
        shutil.rmtree(self._folder / "data", ignore_errors=True)

    def _ports(self, kept: Mapping[str, Any] | None) -> Callable[[str, int | None], int]:
        """A port by its use: that of the parts that run, else the wished one if it is free, else another."""
        last: Mapping[str, int] = kept["ports"] if kept else {}
        given: set[int] = set()

        def choose(use: str, wished: int | None) -> int:
            if use in last:
                port = last[use]
            elif wished is not None and wished not in given and ports.is_free(wished):
                port = wished
            else:
                port = ports.free_port(avoid=given)
            given.add(port)
            return port

        return choose

    @contextmanager
    def _alone(self, doing: str) -> Iterator[None]:
        """One command at a time changes the stack; a second says who is at work."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                who = lock.read().strip() or "another command"
                raise PreconditionError(
                    f"`icestream stack` is at work already ({who}); wait for it, or end it with Ctrl-C"
                ) from None
            lock.truncate(0)
            lock.write(f"{doing}, pid {os.getpid()}\n")
            lock.flush()
            yield
