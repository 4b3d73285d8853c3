"""The loops that one would write by hand, each in one process: `python -m bench.sinks.peers NAME SETTINGS`.

They do their work as fast as a plain loop can; after a crash records are there twice, or not at all.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.sinks.rows import COLUMNS

_MOST = 10_000


def _consumer(given: dict[str, Any]) -> Any:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": given["bootstrap"],
            "group.id": "peer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 16 * 2**20,
        }
    )
    consumer.subscribe([given["topic"]])
    return consumer


def to_objects(given: dict[str, Any]) -> None:
    """Values as they are, one a line, an object for each partition at every flush."""
    consumer = _consumer(given)
    waiting: dict[int, list[Any]] = {}
    if "folder" in given:
        folder = Path(given["folder"])

        def put(name: str, body: bytes) -> None:
            (folder / f".{name}").write_bytes(body)
            (folder / f".{name}").rename(folder / name)

    else:
        import boto3

        client = boto3.client("s3", **given["client"])

        def put(name: str, body: bytes) -> None:
            client.put_object(Bucket=given["bucket"], Key=name, Body=body)

    next_flush = time.monotonic() + given["flush_seconds"]
    while True:
        for message in consumer.consume(_MOST, timeout=0.1):
            waiting.setdefault(message.partition(), []).append(message)
        if time.monotonic() < next_flush:
            continue
        next_flush += given["flush_seconds"]
        for partition, messages in waiting.items():
            body = b"\n".join(message.value() for message in messages) + b"\n"
            put(
                f"{given['topic']}+{partition}+{messages[0].offset():010d}.json.gz",
                gzip.compress(body, compresslevel=6),
            )
        if waiting:
            consumer.commit(asynchronous=False)
        waiting = {}


def to_table(given: dict[str, Any]) -> None:
    """INSERT of many rows, with or without ON CONFLICT, a transaction for each."""
    import psycopg2  # type: ignore[import-untyped]
    from psycopg2.extras import execute_values  # type: ignore[import-untyped]

    consumer, connection = _consumer(given), psycopg2.connect(given["dsn"])
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    statement = f'INSERT INTO "{given["table"]}" ({names}) VALUES %s'
    if given["upserts"]:
        sets = ", ".join(f'"{name}" = EXCLUDED."{name}"' for name in COLUMNS[1:])
        statement += f" ON CONFLICT (id) DO UPDATE SET {sets}"
    while True:
        messages = consumer.consume(given["batch_size"], timeout=0.5)
        if not messages:
            continue
        rows = [tuple(json.loads(message.value())["payload"].values()) for message in messages]
        if given["upserts"]:
            rows = list({row[0]: row for row in rows}.values())
        with connection.cursor() as cursor:
            execute_values(cursor, statement, rows, page_size=len(rows))
        connection.commit()
        consumer.commit(asynchronous=False)


def from_table(given: dict[str, Any]) -> None:
    """SELECT with a cursor of the server, and a message for each row."""
    import psycopg2
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": given["bootstrap"],
            "linger.ms": 5,
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
        }
    )
    connection = psycopg2.connect(given["dsn"])
    with connection.cursor("rows") as cursor:
        cursor.itersize = _MOST
        cursor.execute(f'SELECT * FROM "{given["table"]}" ORDER BY id')
        for row in cursor:
            value = json.dumps(dict(zip(COLUMNS, row, strict=True)))
            while True:
                try:
                    producer.produce(given["topic"], value)
                    break
                except BufferError:
                    producer.poll(0.1)
    producer.flush()


if __name__ == "__main__":
    _NAMES = {"to_objects": to_objects, "to_table": to_table, "from_table": from_table}
    _NAMES[sys.argv[1]](json.loads(sys.argv[2]))
