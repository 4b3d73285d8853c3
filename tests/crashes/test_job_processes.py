"""A job in a process of its own (`icestream.job.manager=process`): killed, stopped, left alone by its worker,
and killed together with it. Nothing is lost, nothing is there twice."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import Pipeline
from tests.crashes.processes import WorkerProcess, wait_for

POINTS = ("planned", "staged", "sending", "accepted", "committed db.t", "closing", "closed", "published")
SECRET = "hunter2-of-the-catalog"
SOME_POINTS = {
    "child": ("accepted", "closing"),
    "worker": ("sending",),
    "both": ("committed db.t",),
}
BY_DEFAULT = {"icestream.job.manager": "process"}
"""Of a worker: it needs no Spark of its own then."""
PROCESS = {
    "icestream.job.manager.driver.memory": "600m",
}
Start = Callable[..., WorkerProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[WorkerProcess] = []

    def begin(*arguments: Any, **named: Any) -> WorkerProcess:
        started.append(WorkerProcess(*arguments, **named))
        return started[-1]

    yield begin
    for one in started:
        one.kill()


class Load:
    """Records that come all the time."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _send(self) -> None:
        first = 0
        while not self._ended.wait(0.1):
            self._pipeline.produce(range(first, first + 20), spoil=range(first, first + 2))
            first += 20


def children(folder: Path) -> list[int]:
    logs = sorted(folder.glob("worker-*.log"), key=lambda path: int(path.stem.partition("-")[2]))
    text = "".join(log.read_text(errors="replace") for log in logs)
    return [int(number) for number in re.findall(r"runs in process (\d+)", text)]


def is_gone(pid: int) -> bool:
    """Whether the process has ended; nobody may have buried it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def jvm_of(child: int) -> int:
    """The Spark of a job's process: of its session."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, told = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            if name == "java" and int(told.split()[3]) == child:
                return int(folder.name)
    raise AssertionError(f"process {child} has no Spark")


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")


def rest(worker: WorkerProcess, verb: str, path: str) -> None:
    answer = httpx.request(verb, worker.url + path, trust_env=False, timeout=90)
    assert answer.status_code < 300, answer.text


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("who", ["child", "worker", "both"])
def test_whoever_is_killed_between_two_steps_each_record_lands_once(
    who: str, long: bool, pipeline: Pipeline, start: Start
) -> None:
    spec = pipeline.folder / "children.json"
    killed = [[who, point] for point in (POINTS if long else SOME_POINTS[who])]
    spec.write_text(json.dumps(killed))
    program = ("-m", "tests.crashes.process_worker", str(spec))
    workers = [start(pipeline, program, BY_DEFAULT)]
    last = spec.with_name(f"child-{len(killed)}")

    def harmless() -> bool | None:
        if workers[-1].process.poll() is not None:
            workers.append(start(pipeline, program, BY_DEFAULT))
        return last.exists() or None

    with Load(pipeline):
        wait_for(harmless, 240, lambda: workers[-1].text)
    workers[-1].wait_settled(pipeline)
    pipeline.check()
    assert len(workers) == (1 if who == "child" else len(killed) + 1)
    said = "".join(worker.text for worker in workers)
    assert [point for _, point in killed if f" {who} {point}\n" not in said] == []


def test_a_job_in_a_process_with_its_spark_is_replaced_when_it_dies_and_ends_with_its_worker(
    make_pipeline: MakePipeline, start: Start
) -> None:
    pipeline = make_pipeline(**PROCESS, **{"iceberg.catalog.jdbc.password": SECRET})
    worker = start(pipeline, settings=BY_DEFAULT)
    pipeline.produce(range(500), spoil=range(3))
    worker.wait_settled(pipeline)
    pipeline.check()
    first = children(pipeline.folder)[-1]
    assert worker.jvm() is None, "the worker needs no Spark of its own"
    assert "-Xmx600m" in command_of(jvm_of(first))
    for file in ("cmdline", "environ"):
        assert SECRET not in Path(f"/proc/{first}/{file}").read_text(errors="replace")
    assert int(Path(f"/proc/{first}/oom_score_adj").read_text()) > 0

    os.kill(first, signal.SIGKILL)
    pipeline.produce(range(500, 1000), spoil=range(3, 5))
    worker.wait_settled(pipeline)
    second = children(pipeline.folder)[-1]
    assert second != first and worker.state(pipeline) == "RUNNING"

    pipeline.check()

    spark = jvm_of(second)
    os.kill(worker.process.pid, signal.SIGKILL)
    wait_for(lambda: (is_gone(second) and is_gone(spark)) or None, 60, lambda: worker.text)
    assert SECRET not in worker.text


def test_a_job_in_a_process_is_replaced_when_it_hangs_and_obeys_as_any_other(
    make_pipeline: MakePipeline, start: Start
) -> None:
    pipeline = make_pipeline(**{"icestream.job.manager.heartbeat.timeout.ms": "8000"})
    spec = pipeline.folder / "children.json"
    spec.write_text("[]")
    worker = start(pipeline, ("-m", "tests.crashes.process_worker", str(spec)), BY_DEFAULT)
    path = f"/connectors/{pipeline.name}"
    pipeline.produce(range(100), spoil=range(2))
    worker.wait_settled(pipeline)
    stopped = children(pipeline.folder)[-1]

    os.kill(stopped, signal.SIGSTOP)
    wait_for(lambda: is_gone(stopped) or None, 60, lambda: worker.text)
    wait_for(lambda: children(pipeline.folder)[1:] or None, 60, lambda: worker.text)
    assert "did not answer for 8 s and was killed" in worker.text
    first = children(pipeline.folder)[-1]

    rest(worker, "PUT", f"{path}/pause")
    wait_for(lambda: worker.state(pipeline) == "PAUSED" or None, 60, lambda: worker.text)
    rest(worker, "PUT", f"{path}/resume")
    pipeline.produce(range(100, 200))
    worker.wait_settled(pipeline)
    assert children(pipeline.folder)[-1] == first, "a pause keeps the process"

    rest(worker, "POST", f"{path}/restart?includeTasks=true")
    pipeline.produce(range(200, 300))
    worker.wait_settled(pipeline)
    second = children(pipeline.folder)[-1]
    assert second != first and is_gone(first)
    pipeline.check()

    rest(worker, "PUT", f"{path}/stop")
    wait_for(lambda: is_gone(second) or None, 60, lambda: worker.text)
    assert worker.state(pipeline) == "STOPPED"
    rest(worker, "DELETE", f"{path}/offsets")
    rest(worker, "PUT", f"{path}/resume")
    pipeline.sent += pipeline.sent
    pipeline.spoiled += pipeline.spoiled
    worker.wait_settled(pipeline)
    wait_for(lambda: pipeline.ids() == pipeline.sent or None, 60, lambda: worker.text)
    pipeline.check()


def test_an_error_of_a_job_in_a_process_is_in_the_status_with_its_trace(
    make_pipeline: MakePipeline, start: Start
) -> None:
    pipeline = make_pipeline(**{"errors.tolerance": "none", "errors.deadletterqueue.topic.name": ""})
    spec = pipeline.folder / "children.json"
    spec.write_text("[]")
    worker = start(pipeline, ("-m", "tests.crashes.process_worker", str(spec)), BY_DEFAULT)
    pipeline.produce(range(3), spoil=range(1))
    wait_for(lambda: worker.state(pipeline) == "FAILED" or None, 60, lambda: worker.text)
    trace = worker.get(f"/connectors/{pipeline.name}/status")["connector"]["trace"]
    assert "RecordRejected" in trace and "sinks/manager.py" in trace and "process_manager" not in trace
