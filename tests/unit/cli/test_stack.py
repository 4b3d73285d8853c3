"""What `icestream stack` says where there is no stack, and what a start that fails leaves behind."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.cli import stack as command
from icestream.stack import plan, steps
from icestream.stack.backend import Endpoints
from icestream.stack.processes import ProcessBackend, Wishes
from icestream.stack.settings import Settings

_ENDPOINTS = Endpoints("kafka:9092", "http://worker", "http://source", "http://dest", "http://dest/_iceberg")


class Backend:
    """One that does nothing but remember what it was asked for."""

    def __init__(self, runs: bool) -> None:
        self.runs = runs
        self.stops = 0

    def endpoints(self) -> Endpoints | None:
        return _ENDPOINTS if self.runs else None

    def start(self, say: Callable[[str], None]) -> Endpoints:
        return _ENDPOINTS

    def stop(self, say: Callable[[str], None]) -> bool:
        self.stops += 1
        return True


@pytest.fixture
def no_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ProcessBackend(Settings(), folder=tmp_path / "stack")
    monkeypatch.setattr(command, "_backend", lambda *_: made)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("asked", [["status"], ["logs"], ["logs", "kafka"], ["sql", "SELECT 1"]])
def test_without_a_stack_the_next_step_is_told(no_stack: None, asked: list[str]) -> None:
    ran = CliRunner().invoke(command.stack, asked)
    assert isinstance(ran.exception, IcestreamError)
    assert str(ran.exception).endswith("icestream stack start")


@pytest.mark.parametrize("error", [IcestreamError("no warehouse"), KeyboardInterrupt()])
@pytest.mark.parametrize(("ran_before", "stops"), [(False, 1), (True, 0)])
def test_a_step_that_fails_or_is_cut_off_stops_a_stack_that_did_not_run_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException, ran_before: bool, stops: int
) -> None:
    def fail() -> str:
        raise error

    def two_steps(*_: Any) -> list[Any]:
        return [
            SimpleNamespace(title="topic", run=lambda: "created"),
            SimpleNamespace(title="warehouse", run=fail),
        ]

    monkeypatch.chdir(tmp_path)
    backend = Backend(runs=ran_before)
    monkeypatch.setattr(command, "_backend", lambda *_: backend)
    monkeypatch.setattr(steps, "steps", two_steps)
    ran = CliRunner().invoke(command.stack, ["start"])
    assert ran.exit_code != 0 and "[2/2] warehouse: failed" in ran.output
    assert backend.stops == stops


@pytest.mark.parametrize("package", ["boto3", "moto"])
def test_a_missing_extra_is_told_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(plan, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(
        PreconditionError, match=rf"{package} is missing; run: pip install 'icestream\[stack\]'"
    ):
        plan.find_programs(Wishes(with_trino=False, stand_in=True), lambda _: None)
