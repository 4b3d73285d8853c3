"""One MERGE into a Delta table, by Arrow, delta-rs and Spark's Delta: `make bench-delta-merge`.

The load is that of `bench.upserts`: changes of some keys of a large table, the newest of each key, as a task
of ours has staged them. Each side has a process of its own, and the same batches. Its time is that of the
merge with its commit alone, its memory that of the process and of its JVM at their highest. Spark merges
twice: copying the files that it touches, as delta-rs does, and with deletion vectors.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.machine import machine
from bench.page import table
from bench.upserts import Changes, Load
from bench.usage import TreeMeter

_RESULTS: Final = Path(__file__).parent / "results" / "delta_merge.json"
_SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("balance", pa.int64())]
)
_SIDES: Final = ("arrow", "delta-rs", "spark", "spark-vectors")
_ROWS_A_FILE: Final = 250_000


def filled_table(path: Path, rows: int, *, vectors: bool) -> None:
    from deltalake import DeltaTable, write_deltalake

    properties: dict[str, str | None] = {"delta.enableDeletionVectors": "true"} if vectors else {}
    for start in range(0, rows, _ROWS_A_FILE):
        ids = np.arange(start, min(start + _ROWS_A_FILE, rows))
        columns = [
            pa.array(ids),
            pa.array([f"customer number {id_}" for id_ in ids.tolist()]),
            pa.array([f"city {id_ % 1000}" for id_ in ids.tolist()]),
            pa.array(np.zeros(len(ids), np.int64)),
        ]
        write_deltalake(str(path), pa.table(columns, schema=_SCHEMA), mode="append")
    if properties:
        DeltaTable(str(path)).alter.set_table_properties({k: str(v) for k, v in properties.items()})


def newest(batch: list[tuple[int, bytes]]) -> pa.Table:
    """What a task stages: the last change of each key."""
    last = {id_: json.loads(record) for id_, record in batch}
    rows = list(last.values())
    columns = [
        pa.array([row[name] for row in rows], kind)
        for name, kind in zip(_SCHEMA.names, _SCHEMA.types, strict=True)
    ]
    kinds = pa.array([0 if row["op"] == "d" else 1 for row in rows], pa.int8())
    return pa.table([*columns, kinds], names=[*_SCHEMA.names, "kind"])


def by_rust(table: Path) -> Callable[[pa.Table], None]:
    from deltalake import DeltaTable

    def merge(changes: pa.Table) -> None:
        changed = {name: f"s.{name}" for name in _SCHEMA.names}
        (
            DeltaTable(str(table))
            .merge(changes, "t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_delete("s.kind = 0")
            .when_matched_update(changed)
            .when_not_matched_insert(changed, "s.kind = 1")
            .execute()
        )

    return merge


def by_arrow(table: Path) -> Callable[[pa.Table], None]:
    """File by file: those that have a key of the batch are written again without its rows; the new rows are
    one more file. One commit takes the old ones out and the new ones in."""
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    def written(batches: Iterable[pa.RecordBatch], now: int) -> AddAction | None:
        path = table / f"{uuid.uuid4()}.parquet"
        rows = 0
        with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        size = path.stat().st_size
        return AddAction(path.name, size, {}, now, True, json.dumps({"numRecords": rows})) if rows else None

    def merge(changes: pa.Table) -> None:
        handle = DeltaTable(str(table))
        now = int(time.time() * 1000)
        keys = pa.table({"id": changes["id"]})

        def without_changes(uri: str) -> list[Any]:
            file = pq.ParquetFile(uri)
            held = file.read(["id"]).append_column("row", pa.array(np.arange(file.metadata.num_rows)))
            gone = held.join(keys, "id", join_type="left semi", use_threads=False)["row"].to_numpy()
            if not len(gone):
                return []
            keep = np.ones(file.metadata.num_rows, np.bool_)
            keep[gone] = False

            def kept() -> Iterator[pa.RecordBatch]:
                at = 0
                for batch in file.iter_batches(65_536, columns=_SCHEMA.names):
                    yield batch.filter(pa.array(keep[at : at + batch.num_rows]))
                    at += batch.num_rows

            removed = RemoveAction(Path(uri).name, True, now, Path(uri).stat().st_size, {})
            return [one for one in (written(kept(), now), removed) if one is not None]

        with ThreadPoolExecutor(2) as threads:
            actions = [one for some in threads.map(without_changes, handle.file_uris()) for one in some]
        puts = changes.filter(pc.field("kind") == 1).select(_SCHEMA.names)
        actions += [one for one in (written(puts.to_batches(), now),) if one is not None]
        properties = CommitProperties(max_commit_retries=0)
        handle.create_write_transaction(actions, "append", handle.schema(), commit_properties=properties)

    return merge


def by_spark(table: Path) -> Callable[[pa.Table], None]:
    from pyspark.sql import SparkSession

    from bench.sides import peer_jars
    from icestream.java_runtime import java_of_spark

    library = sorted(peer_jars("spark-delta").glob("*.jar"))
    jars = ",".join(str(jar) for jar in library if _is_missing(jar.name))
    settings = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
    with java_of_spark():
        spark = settings.getOrCreate()
    staged = table.parent / "staged.parquet"

    def merge(changes: pa.Table) -> None:
        pq.write_table(changes, staged)
        spark.read.parquet(str(staged)).createOrReplaceTempView("changes")
        changed = ", ".join(f"t.{name} = s.{name}" for name in _SCHEMA.names)
        spark.sql(
            f"MERGE INTO delta.`{table}` t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.kind = 0 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {changed} WHEN NOT MATCHED AND s.kind = 1 THEN INSERT "
            f"({', '.join(_SCHEMA.names)}) VALUES ({', '.join(f's.{name}' for name in _SCHEMA.names)})"
        )

    return merge


def _is_missing(jar: str) -> bool:
    """Spark has the others itself, of the versions that it wants."""
    return jar.startswith(("delta-", "unitycatalog-"))


def one_side(side: str, folder: Path, load: Load) -> None:
    table = folder / "table"
    merge = {"arrow": by_arrow, "delta-rs": by_rust}.get(side, by_spark)(table)
    changes = Changes(load)
    for _ in range(load.batches):
        staged = newest(changes.batch())
        began = time.monotonic()
        merge(staged)
        print(json.dumps({"seconds": time.monotonic() - began}), flush=True)
    print(json.dumps({"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
    print(json.dumps({"expected": changes.expected}), flush=True)


def measured(side: str, load: Load) -> dict[str, Any]:
    """One side in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled_table(folder / "table", load.rows, vectors=side == "spark-vectors")
        given = [str(number) for number in (load.rows, load.changes, load.keys, load.batches)]
        command = [
            sys.executable,
            "-m",
            "bench.delta_merge",
            "--side",
            side,
            "--folder",
            name,
            "--load",
            *given,
        ]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            with TreeMeter(process.pid) as meter:
                said, _ = process.communicate()
        used = meter.read()
        if process.returncode:
            raise SystemExit(f"{side}: {said[-500:]}\n{(folder / 'log').read_text()[-3000:]}")
        told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        refuse_other(folder / "table", told[-1]["expected"])
    return {
        "seconds": [round(one["seconds"], 2) for one in told if "seconds" in one],
        "cpu_seconds": round(used.cpu_seconds, 1),
        # A merge in the process itself may be over between two looks of the meter.
        "peak_mb": round(max(used.peak_memory_bytes, told[-2]["bytes"]) / 2**20),
    }


def refuse_other(table: Path, expected: list[int]) -> None:
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("t", DeltaTable(str(table)))
    [found] = pa.table(
        query.execute("SELECT count(*) AS n, sum(balance) AS worth FROM t").read_all()
    ).to_pylist()
    if [found["n"], found["worth"]] != expected:
        raise SystemExit(f"the table has {found}, and not {expected}")


def summary(sides: dict[str, dict[str, Any]]) -> str:
    return table(
        ("", *sides),
        (
            ("first batch, seconds", *(f"{one['seconds'][0]:.2f}" for one in sides.values())),
            (
                "the others, median",
                *(f"{statistics.median(one['seconds'][1:]):.2f}" for one in sides.values()),
            ),
            ("CPU-seconds of all", *(f"{one['cpu_seconds']}" for one in sides.values())),
            ("memory at its highest, MB", *(f"{one['peak_mb']}" for one in sides.values())),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--sides", nargs="+", choices=_SIDES, default=_SIDES)
    parser.add_argument("--save", action="store_true", help=f"write {_RESULTS.name}")
    parser.add_argument("--side", choices=_SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=int, nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        one_side(chosen.side, chosen.folder, Load(*chosen.load))
        return
    load = Load(chosen.rows, chosen.changes, chosen.keys, chosen.batches)
    sides = {side: measured(side, load) for side in chosen.sides}
    print(summary(sides))
    if chosen.save:
        _RESULTS.write_text(json.dumps({"machine": machine(), "load": vars(load), **sides}, indent=2) + "\n")


if __name__ == "__main__":
    main()
