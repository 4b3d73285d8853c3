"""The S3 sink at an even rate: from the produce call to the object that has the record.

The destination is listed four times a second, and an object counts from the first listing that has it. At the
end every line of every object is read: a record that is there twice is an error.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from bench import machine
from bench.machine import Foreign
from bench.sides import ours
from bench.sinks.running import Running, running_ours, running_peer
from bench.sinks.servers import BUCKET, S3Server, running_s3
from bench.steady_load import PARTITIONS, Sent
from bench.worker import RunFailed
from icestream.embedded import kafka

_LOOK_S: Final = 0.25
_AFTER_S: Final = 60.0
_TOPIC: Final = "logs"
_FLUSH_SIZE: Final = 25_000
"""Records of an object, if they come within the flush interval."""
_REQUEST: Final = re.compile(rb'"requestID": ?"([0-9A-F]{16})"')


@dataclass(frozen=True)
class RateOptions:
    rate: int
    seconds: float
    warm_up: float
    flush_seconds: float


@dataclass(frozen=True)
class RateRun:
    """One side at one rate. Latencies are of the records after the warm-up."""

    case: str
    side: str
    rate: int
    records: int
    visible: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    behind_seconds: float
    """From the last record's produce until all were there."""
    cpu_per_million: float
    """CPU-seconds for a million records that came, from the creation of the connector on."""
    peak_memory_mb: float
    objects: int
    foreign_share: float

    @property
    def keeps_up(self) -> bool:
        return self.visible == self.records


class Objects(Protocol):
    """Where objects appear."""

    def names(self) -> set[str]: ...

    def read(self, name: str) -> bytes: ...


class Bucket:
    def __init__(self, server: S3Server) -> None:
        self._client = server.client()

    def names(self) -> set[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return {one["Key"] for page in pages for one in page.get("Contents", ()) if _is_data(one["Key"])}

    def read(self, name: str) -> bytes:
        return bytes(self._client.get_object(Bucket=BUCKET, Key=name)["Body"].read())


class Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> set[str]:
        found = (str(file.relative_to(self._path)) for file in self._path.rglob("*.json.gz"))
        return {name for name in found if _is_data(name)}

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()


def _is_data(name: str) -> bool:
    """Not what is under way, nor what a job notes for itself."""
    return name.endswith(".json.gz") and not any(part.startswith((".", "_")) for part in name.split("/"))


def connector(options: RateOptions) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": _TOPIC,
        "tasks.max": str(PARTITIONS),
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "s3.compression.type": "gzip",
        "flush.size": str(_FLUSH_SIZE),
        "icestream.s3.commit.interval.ms": str(round(options.flush_seconds * 1000)),
        "topics.dir": "topics",
    }


@contextmanager
def started(
    case: str, side: str, folder: Path, broker: kafka.Broker, options: RateOptions
) -> Iterator[tuple[Running, Objects, list[int]]]:
    """The side, where its objects appear, and the processes of servers."""
    given: dict[str, Any] = {
        "bootstrap": broker.bootstrap,
        "topic": _TOPIC,
        "flush_seconds": options.flush_seconds,
    }
    if case == "folder":
        target = folder / "lake"
        target.mkdir()
        config = connector(options) | {"store.url": f"file://{target}", "s3.bucket.name": BUCKET}
        if side == "peer":
            with running_peer(folder, "to_objects", given | {"folder": str(target)}) as running:
                yield running, Folder(target), []
        else:
            side_ = ours()
            allowed = replace(side_, worker={**side_.worker, "icestream.s3.folders": str(target)})
            with running_ours(folder, broker.bootstrap, config, allowed) as running:
                yield running, Folder(target), []
        return
    with running_s3(folder) as server:
        if side == "peer":
            login = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
            client = {"endpoint_url": server.endpoint, **login}
            with running_peer(folder, "to_objects", given | {"bucket": BUCKET, "client": client}) as running:
                yield running, Bucket(server), [server.pid]
        else:
            with running_ours(folder, broker.bootstrap, connector(options) | server.connector) as running:
                yield running, Bucket(server), [server.pid]


def run(case: str, side: str, folder: Path, broker: kafka.Broker, options: RateOptions) -> RateRun:
    from icestream.embedded.topics import ensure_topic

    ensure_topic(broker.bootstrap, _TOPIC, PARTITIONS)
    with started(case, side, folder, broker, options) as (running, objects, servers):
        running.meter.mark()
        running.begin()
        watched = _watched(running, objects, folder, broker, servers, options)
    return _result(case, side, watched, options)


@dataclass(frozen=True)
class Watched:
    sent: np.ndarray[Any, np.dtype[np.float64]]
    seen: np.ndarray[Any, np.dtype[np.float64]]
    objects: int
    cpu_seconds: float
    peak_memory: int
    foreign_share: float


def _watched(
    running: Running,
    objects: Objects,
    folder: Path,
    broker: kafka.Broker,
    servers: list[int],
    options: RateOptions,
) -> Watched:
    seconds, file = options.warm_up + options.seconds, folder / "sent"
    total = int(options.rate * seconds)
    load = [sys.executable, "-m", "bench.steady_load", broker.bootstrap, _TOPIC]
    reaped = machine.reaped()
    process = subprocess.Popen([*load, str(options.rate), str(seconds), str(file)])
    began, foreign = time.monotonic(), None
    first_seen: dict[str, float] = {}
    seen = np.full(total, np.nan)
    counted: set[str] = set()
    try:
        while True:
            now = time.monotonic()
            for name in objects.names() - first_seen.keys():
                first_seen[name] = now
            if foreign is None and now - began >= options.warm_up:
                foreign = Foreign([broker.pid, *servers])
            running.check()
            if process.poll() is not None:
                if process.returncode:
                    raise RunFailed("the load ended with an error")
                # Reading takes CPU that the side may need: only once nothing more is sent.
                for name in first_seen.keys() - counted:
                    count_records(seen, objects.read(name), first_seen[name], name)
                    counted.add(name)
                if np.isfinite(seen).all() or now - began > seconds + options.flush_seconds + _AFTER_S:
                    break
            elif now - began > seconds + _AFTER_S:
                raise RunFailed(f"the broker does not take {options.rate:,} records a second")
            time.sleep(_LOOK_S)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    usage = running.meter.read()
    sent = np.frombuffer(Sent.read(file).times(), dtype=np.float64)
    share = foreign.share(usage.cpu_seconds + machine.reaped() - reaped) if foreign else 0.0
    return Watched(sent, seen, len(counted), usage.cpu_seconds, usage.peak_memory_bytes, share)


def count_records(seen: np.ndarray[Any, Any], body: bytes, at: float, name: str) -> None:
    """Note when the records of an object were seen; RunFailed if one was there before."""
    lines = gzip.decompress(body)
    numbers = np.array([int(found, 16) for found in _REQUEST.findall(lines)], np.int64)
    if len(numbers) != lines.count(b"\n"):
        raise RunFailed(f"object {name} has {lines.count(10)} lines and {len(numbers)} records")
    if np.isfinite(seen[numbers]).any() or len(np.unique(numbers)) < len(numbers):
        raise RunFailed(f"a record is in {name} and in another object; this run counts for nothing")
    seen[numbers] = at


def _result(case: str, side: str, watched: Watched, options: RateOptions) -> RateRun:
    sent, seen = watched.sent, watched.seen
    visible = int(np.isfinite(seen).sum())
    counted = np.flatnonzero(sent >= sent[0] + options.warm_up)
    # A record that is not there yet has waited at least until now.
    latest = float(np.nanmax(seen)) if visible == len(sent) else float(sent[-1]) + _AFTER_S
    waited = (np.where(np.isfinite(seen), seen, latest) - sent)[counted] * 1000
    return RateRun(
        case=case,
        side=side,
        rate=options.rate,
        records=len(sent),
        visible=visible,
        p50_ms=round(float(np.percentile(waited, 50))),
        p99_ms=round(float(np.percentile(waited, 99))),
        worst_ms=round(float(waited.max())),
        behind_seconds=round(latest - float(sent[-1]), 1),
        cpu_per_million=round(watched.cpu_seconds * 1e6 / max(1, visible), 1),
        peak_memory_mb=round(watched.peak_memory / 2**20),
        objects=watched.objects,
        foreign_share=round(watched.foreign_share, 3),
    )
