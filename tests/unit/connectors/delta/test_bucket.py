"""A Delta table in a bucket whose network has bad days: a proxy in front of moto loses what it is told to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from icestream.api.checkpoint import Checkpoint
from icestream.api.errors import CommitConflict, CommitUnknown, RetriableError
from icestream.connectors.delta import storage as storage_module
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.storage import Storage
from tests.http_proxy import Answer, ConnectionLost, Handle, PassOn, Request, proxy
from tests.integration.s3_faults import Faults
from tests.long_form import sized
from tests.unit.connectors.delta.lake import Lake, ids
from tests.unit.pipeline.batches import SOURCE


@dataclass
class Bucket(Lake):
    """A table in a bucket; readers reach it without the proxy."""

    direct: str = ""

    def table(self) -> DeltaTable:
        own = {**self.config, "delta.storage.s3.endpoint": self.direct}
        place = f"{self.config['delta.location']}/ns/t"
        return DeltaTable(place, storage_options=Storage.from_config(own).for_delta(place))


@contextmanager
def behind(s3: dict[str, str], handle: Handle) -> Iterator[Bucket]:
    keys = {key.replace("iceberg.catalog.", "delta.storage."): value for key, value in s3.items()}
    keys.pop("delta.storage.client.region")
    direct = keys["delta.storage.s3.endpoint"]
    place = f"s3://warehouse/lake-{uuid.uuid4().hex[:8]}"
    with proxy(direct, handle) as address:
        config = {**keys, "delta.storage.s3.endpoint": address, "delta.location": place}
        yield Bucket(Path("/nowhere"), config, direct=direct)


class LosesAnswers:
    """Loses the answers to some puts into the log, which the store has done."""

    def __init__(self) -> None:
        self.left = 0
        self.is_down = False
        self.stays_down = False
        self.lost = 0

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        if self.is_down:
            raise ConnectionLost
        answer = pass_on(request)
        if request.verb == "PUT" and "_delta_log/" in request.target and self.left:
            self.left -= 1
            self.lost += 1
            self.is_down = self.stays_down
            raise ConnectionLost
        return answer


def writes(lake: Lake) -> int:
    return [entry["operation"] for entry in history(lake)].count("WRITE")


def history(lake: Lake) -> list[dict[str, Any]]:
    own = {**lake.config, "delta.storage.s3.endpoint": getattr(lake, "direct", "")}
    log = TableLog.of(f"{lake.config['delta.location']}/ns/t", Storage.from_config(own))
    return list(log.entries(lake.table().version()))


def test_a_commit_whose_answer_is_lost_lands_once(s3: dict[str, str]) -> None:
    """The store's client repeats the put, and is refused for its own commit."""
    loses = LosesAnswers()
    with behind(s3, loses) as lake:
        first = lake.land(ids(0, 3))
        loses.left = 1
        second = lake.land(ids(3, 5), first)
        assert loses.lost == 1
        assert lake.target().found().checkpoint == second
        assert lake.ids() == list(range(5))
        assert writes(lake) == 2


def test_a_commit_nobody_knows_of_is_known_when_the_store_is_back(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "_RETRIES", "1")
    monkeypatch.setattr(storage_module, "_RETRY_TIMEOUT", "1s")
    loses = LosesAnswers()
    with behind(s3, loses) as lake:
        first = lake.land(ids(0, 3))
        batch = lake.stage(ids(3, 5), 3)
        commit = lake.commit_of(batch, 3, 2, first)
        loses.left, loses.stays_down = 1, True
        with pytest.raises(CommitUnknown, match="may have landed"):
            lake.target().commit(commit)
        loses.is_down = False
        assert lake.target().found().checkpoint == commit.checkpoint
        with pytest.raises(CommitConflict, match="somebody else committed"):
            lake.target().commit(commit)
        assert lake.ids() == list(range(5))


@pytest.mark.parametrize("rows", sized(9, 60))
def test_every_row_lands_once_through_bad_days(s3: dict[str, str], rows: int) -> None:
    """Whatever is lost or refused on the way, a manager goes on from what the table says."""
    faults = Faults({"500": 0.03, "503 SlowDown": 0.03, "reset before": 0.03, "reset after": 0.06}, seed=3)
    with behind(s3, faults) as lake:
        reached: Checkpoint | None = None
        count = 0
        while count < rows:
            try:
                reached = lake.target().found().checkpoint
                count = reached.offsets[SOURCE] if reached else 0
                if count < rows:
                    lake.land(ids(count, count + 3), reached)
            except RetriableError:
                continue
        faults.end()
        assert sum(faults.met.values()) > faults.met["well"]
        assert lake.ids() == list(range(rows))
        assert writes(lake) == rows // 3
