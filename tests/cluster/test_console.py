"""The console of a group: any worker shows all connectors, and knows whom to ask about each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually

pytestmark = pytest.mark.slow


def ask(worker: WorkerProcess, path: str, **query: str) -> httpx.Response:
    headers = {"x-icestream-console": "1"}
    url = f"{worker.url}/console/api/{path}"
    return httpx.get(url, params=query, headers=headers, timeout=60, trust_env=False)


def rows(worker: WorkerProcess) -> dict[str, dict[str, Any]]:
    answer = ask(worker, "overview").json()
    return {row[0]: dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]}


def test_each_worker_shows_all_and_what_moves(
    broker: Broker, group: str, tmp_path: Path, start_worker: StartWorker
) -> None:
    topic = f"{group}-lines"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)
    first, second = start_worker(), start_worker()
    names = [f"c{number}" for number in range(4)]
    for name in names:
        config = {"connector.class": "FileStreamSink", "file": str(tmp_path / name), "topics": topic}
        call(first.url, "POST", "/connectors", {"name": name, "config": config})

    def shown_by(worker: WorkerProcess) -> dict[str, Any] | None:
        found = rows(worker)
        owners = {row["worker"] for row in found.values()}
        fresh = all(row["state"] == "RUNNING" and row["age_ms"] < 30_000 for row in found.values())
        return found if sorted(found) == names and fresh and len(owners) == 2 else None

    def told() -> str:
        return f"{rows(first)}\n{rows(second)}\n{first.text()}\n{second.text()}"

    by_first = eventually(lambda: shown_by(first), told)
    eventually(lambda: shown_by(second), told)
    for name in names:
        here, there = (ask(worker, "connector", connector=name).json() for worker in (first, second))
        assert (here["state"], here["worker"]) == ("RUNNING", by_first[name]["worker"])
        assert (there["state"], there["worker"], there["since_ms"]) == (
            here["state"],
            here["worker"],
            here["since_ms"],
        )
    workers = ask(second, "workers").json()
    assert {member["worker"] for member in workers["members"]} == {first.address, second.address}
    assert all(member["answers"] and member["version"] for member in workers["members"])
    assert [member["connectors"] for member in workers["members"]] == [2, 2]

    lost = [name for name in names if by_first[name]["worker"] == second.address]
    second.kill()
    gone = ask(first, "connector", connector=lost[0])
    # Until the group has noticed; then it is here.
    assert gone.status_code in (200, 409, 503)

    def has_all() -> bool:
        found = rows(first)
        return {row["worker"] for row in found.values() if row["state"] == "RUNNING"} == {
            first.address
        } and all(ask(first, "connector", connector=name).status_code == 200 for name in names)

    eventually(has_all, lambda: f"{rows(first)}\n{first.text()}")
    (member,) = ask(first, "workers").json()["members"]
    assert (member["worker"], member["is_leader"], member["connectors"]) == (first.address, True, 4)
    rebalances = ask(first, "workers").json()["rebalances"]
    (noticed,) = [one for one in rebalances if second.url in one["left"]]
    assert sorted(noticed["gained"]) == lost
