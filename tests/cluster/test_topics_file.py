"""A cluster whose workers have a topics file: its leader brings the connectors, whoever that is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, eventually


def flush_size(worker: WorkerProcess, name: str) -> str | None:
    answer = httpx.get(f"{worker.url}/connectors/{name}/config", trust_env=False, timeout=30).json()
    return answer.get("flush.size") if isinstance(answer, dict) else None


@pytest.mark.long
def test_the_leader_brings_the_connectors_of_the_file(start_worker: StartWorker, tmp_path: Path) -> None:
    old, new = tmp_path / "old.yml", tmp_path / "new.yml"
    for file, size in ((old, 7), (new, 8)):
        users = f"users: {{processing: {{batch-size: {size}}}}}"
        file.write_text(f"connector: {{topics: {{{users}, orders: {{}}}}}}\n")
    first = start_worker(**{"icestream.topics.file": str(old)})
    eventually(lambda: flush_size(first, "users") == "7", first.text)
    eventually(lambda: flush_size(first, "orders") == "1000", first.text)
    second = start_worker(**{"icestream.topics.file": str(new)})
    eventually(lambda: "the leader of the group brings connector users" in second.text(), second.text)
    assert flush_size(second, "users") == "7"
    first.kill()
    eventually(lambda: flush_size(second, "users") == "8", second.text)
