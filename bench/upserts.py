"""Changes of keys into a large table, us and Spark Structured Streaming side by side: `make bench-upserts`.

Both sides get the same batches: changes of some keys of a table, some of which are new, some deleted. Ours
reads them from Kafka, with table maintenance on; Spark's, which has no Kafka source for this version, reads
them from JSON files, one a micro-batch, and merges in `foreachBatch`, without maintenance. The time of a
batch is from its plan to the end of what follows from it, maintenance included. At the end both tables are
compared with what must be there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from bench.machine import machine
from bench.page import publish
from icestream.connectors.iceberg.catalogs.opening import open_catalog

_RESULTS: Final = Path(__file__).parent / "results" / "upserts.json"
_TABLE: Final = "bench.accounts"
_SCHEMA: Final = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "city", StringType()),
    NestedField(4, "balance", LongType()),
    identifier_field_ids=[1],
)
_PARTITIONS: Final = 4
_NEW_KEYS: Final = 0.05
_DELETED: Final = 0.05


@dataclass(frozen=True)
class Load:
    """What is to be done."""

    rows: int
    changes: int
    keys: int
    batches: int


class Changes:
    """The batches, the same for both sides, and what the table must be after them."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._rng = np.random.default_rng(1)
        most = load.rows + int(load.batches * load.keys * _NEW_KEYS) + 1
        self._balance = np.full(most, -1, np.int64)
        """By id; -1: there is no such row."""
        self._balance[: load.rows] = 0
        self._next = load.rows

    def batch(self) -> list[tuple[int, bytes]]:
        """Ids with their records, in order."""
        load, rng = self._load, self._rng
        new = int(load.keys * _NEW_KEYS)
        keys = rng.choice(self._next, load.keys - new, replace=False)
        keys = np.concatenate([keys, np.arange(self._next, self._next + new)])
        self._next += new
        # Every key at least once, the others at random.
        more = rng.choice(keys, load.changes - load.keys)
        ids = rng.permutation(np.concatenate([keys, more]))
        balances = rng.integers(1, 10**9, len(ids))
        deleted = rng.random(len(ids)) < _DELETED
        # Later ones win.
        self._balance[ids] = np.where(deleted, -1, balances)
        return [
            (id_, self._record(id_, balance, gone))
            for id_, balance, gone in zip(ids.tolist(), balances.tolist(), deleted.tolist(), strict=True)
        ]

    @staticmethod
    def _record(id_: int, balance: int, gone: bool) -> bytes:
        return b'{"id":%d,"name":"customer number %d","city":"city %d","balance":%d,"op":"%s"}' % (
            *(id_, id_, id_ % 1000, balance),
            b"d" if gone else b"u",
        )

    @property
    def expected(self) -> tuple[int, int]:
        """Rows, and the sum of their balances."""
        there = self._balance[self._balance >= 0]
        return len(there), int(there.sum())


def catalog_config(folder: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "iceberg.catalog": "bench",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }


def filled_table(folder: Path, rows: int) -> None:
    catalog = open_catalog(catalog_config(folder))
    catalog.create_namespace("bench")
    properties = {"format-version": "2", "write.merge.mode": "merge-on-read"}
    table = catalog.create_table(_TABLE, _SCHEMA, properties=properties)
    for start in range(0, rows, 1_000_000):
        ids = np.arange(start, min(start + 1_000_000, rows))
        columns = {
            "id": pa.array(ids),
            "name": pa.array([f"customer number {id_}" for id_ in ids.tolist()]),
            "city": pa.array([f"city {id_ % 1000}" for id_ in ids.tolist()]),
            "balance": pa.array(np.zeros(len(ids), np.int64)),
        }
        table.append(pa.table(columns, schema=table.schema().as_arrow()))


def found_in(folder: Path) -> tuple[int, int, int]:
    """Rows, the sum of their balances, and how many files a reader opens."""
    table = open_catalog(catalog_config(folder)).load_table(_TABLE)
    files = {one.file_path for task in table.scan().plan_files() for one in (task.file, *task.delete_files)}
    balances = table.scan(selected_fields=("balance",)).to_arrow()["balance"].to_numpy()
    return len(balances), int(balances.sum()), len(files)


# -- our side --


def ours(folder: Path, load: Load, tell: Callable[[float], None]) -> None:
    from confluent_kafka import Producer

    from icestream.cli.sql import jar_settings
    from icestream.embedded import ports
    from icestream.embedded.kafka import running_broker
    from icestream.embedded.topics import ensure_topic
    from icestream.jobs.sinks.build import batch_runner, sink_manager
    from icestream.pipeline.spark_runner import SparkPlane

    config = {
        **catalog_config(folder),
        "name": "bench",
        "topics": "accounts",
        "tasks.max": "2",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "iceberg.tables": _TABLE,
        "iceberg.tables.cdc-field": "op",
        "icestream.commit.rows": str(load.changes),
        "icestream.maintenance.enabled": "true",
        "icestream.maintenance.commits": "5",
    }
    changes = Changes(load)
    with running_broker(folder / "kafka", ports.free_port()) as broker:
        ensure_topic(broker.bootstrap, "accounts", _PARTITIONS)
        jars = jar_settings([config])
        worker = {"bootstrap.servers": broker.bootstrap, "spark.master": "local[2]", **jars}
        plane = SparkPlane(worker)
        runner = batch_runner("bench", config, worker, lambda: plane)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "linger.ms": 20,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        manager = sink_manager("bench", config, worker, runner)
        for number in range(load.batches):
            for id_, record in changes.batch():
                producer.produce("accounts", record, partition=id_ % _PARTITIONS)
                producer.poll(0)
            assert producer.flush(120) == 0
            began = time.monotonic()
            while True:
                pause = manager.tick()
                if pause and manager.progress.batches > number and manager.progress.lag == 0:
                    break
            tell(time.monotonic() - began)
        manager.close()
    refuse_other(changes, folder)


# -- Spark's --


def peer(folder: Path, load: Load, tell: Callable[[float], None]) -> None:
    from icestream.cli.sql import jar_settings
    from icestream.pipeline.sql import open_sql_session

    config = catalog_config(folder)
    spark = open_sql_session(
        [config],
        {
            **jar_settings([config]),
            "spark.master": "local[2]",
            "spark.driver.memory": "4g",
            "spark.sql.shuffle.partitions": "4",
        },
    )
    changes = Changes(load)
    incoming = folder / "incoming"
    incoming.mkdir()
    stream = (
        spark.readStream.schema("id BIGINT, name STRING, city STRING, balance BIGINT, op STRING, at BIGINT")
        .option("maxFilesPerTrigger", 1)
        .json(str(incoming))
    )

    def merge(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("changes")
        batch.sparkSession.sql(
            f"MERGE INTO bench.{_TABLE} t USING (SELECT * FROM (SELECT *, row_number() OVER "
            "(PARTITION BY id ORDER BY at DESC) AS newest FROM changes) WHERE newest = 1) s ON t.id = s.id "
            "WHEN MATCHED AND s.op = 'd' THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET t.name = s.name, t.city = s.city, t.balance = s.balance "
            "WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT (id, name, city, balance) "
            "VALUES (s.id, s.name, s.city, s.balance)"
        )

    query = (
        stream.writeStream.foreachBatch(merge)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    for number in range(load.batches):
        lines = [record[:-1] + b',"at":%d}' % at for at, (_, record) in enumerate(changes.batch())]
        hidden = folder / "next.json"
        hidden.write_bytes(b"\n".join(lines))
        hidden.rename(incoming / f"{number:04}.json")
        began = time.monotonic()
        query.processAllAvailable()
        tell(time.monotonic() - began)
    query.stop()
    refuse_other(changes, folder)


def refuse_other(changes: Changes, folder: Path) -> None:
    rows, balance, files = found_in(folder)
    if (rows, balance) != changes.expected:
        raise SystemExit(f"the table has {rows} rows worth {balance}, and not {changes.expected}")
    print(json.dumps({"files": files}), flush=True)


# -- both --


def measured(side: str, load: Load) -> dict[str, Any]:
    """One side in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled_table(folder, load.rows)
        given = [str(number) for number in (load.rows, load.changes, load.keys, load.batches)]
        command = [sys.executable, "-m", "bench.upserts", "--side", side, "--folder", name, "--load", *given]
        with (folder / "log").open("w") as log:
            process = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True)
        if process.returncode:
            raise SystemExit(f"{side}: {process.stdout[-500:]}\n{(folder / 'log').read_text()[-3000:]}")
    told = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    seconds = [round(one["seconds"], 2) for one in told if "seconds" in one]
    return {"seconds": seconds, "files": told[-1]["files"]}


def summary(sides: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| | Spark Structured Streaming, foreachBatch + MERGE | Icestream |",
        "|---|---|---|",
        _line("first batch, seconds", sides, lambda all_: all_[0]),
        _line("batches 2 to 5, median", sides, lambda all_: statistics.median(all_[1:5])),
        _line("mean of batches 4 to 8", sides, lambda all_: statistics.mean(all_[3:8])),
        _line("mean of the last five", sides, lambda all_: statistics.mean(all_[-5:])),
        _line("last five ÷ batches 4 to 8", sides, growth),
        f"| batches | {len(sides['peer']['seconds'])} | {len(sides['ours']['seconds'])} |",
        f"| files that a reader opens at the end | {sides['peer']['files']} | {sides['ours']['files']} |",
    ]
    return "\n".join(lines)


def growth(seconds: Sequence[float]) -> float:
    """With what compaction takes of single batches spread over five."""
    return statistics.mean(seconds[-5:]) / statistics.mean(seconds[3:8])


def _line(what: str, sides: dict[str, dict[str, Any]], of: Callable[[Sequence[float]], float]) -> str:
    shown = [f"{of(sides[side]['seconds']):.2f}" for side in ("peer", "ours")]
    return f"| {what} | {' | '.join(shown)} |"


def _tell(seconds: float) -> None:
    print(json.dumps({"seconds": seconds}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--peer-batches", type=int, default=10)
    parser.add_argument("--save", action="store_true", help=f"write {_RESULTS.name}")
    parser.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=int, nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        run = ours if chosen.side == "ours" else peer
        run(
            chosen.folder,
            Load(*chosen.load),
            lambda seconds: print(json.dumps({"seconds": seconds}), flush=True),
        )
        return
    load = Load(chosen.rows, chosen.changes, chosen.keys, chosen.batches)
    theirs = Load(chosen.rows, chosen.changes, chosen.keys, chosen.peer_batches)
    sides = {"peer": measured("peer", theirs), "ours": measured("ours", load)}
    print(summary(sides))
    if chosen.save:
        body = {"machine": machine(), "load": vars(load), **sides}
        _RESULTS.write_text(json.dumps(body, indent=2) + "\n")
        publish("upserts", summary(sides))


if __name__ == "__main__":
    main()
