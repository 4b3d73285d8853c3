"""A real Kafka broker as a background process of its own: `icestream kafka`, the demo, tests and benchmarks.

A broker is known by its data folder: whoever has the folder can ask for it, stop it or start it again.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError
from icestream.embedded import ports
from icestream.embedded.broker_files import (
    SCRAM,
    SecureListener,
    logging_properties,
    new_cluster_id,
    server_properties,
)
from icestream.embedded.certificates import Certificates, certificates
from icestream.embedded.home import home, require_space
from icestream.embedded.jars import fetch
from icestream.embedded.java import java
from icestream.embedded.process import Process, spawn
from icestream.java_artifacts import root

VERSION: Final = root("kafka").version
USUAL_PORT: Final = 9092
_READY_S: Final = 90.0
_STOP_S: Final = 20.0
_NEEDED_MB: Final = 500


@dataclass(frozen=True)
class Broker:
    """A broker that runs."""

    pid: int
    port: int
    data: Path

    @property
    def bootstrap(self) -> str:
        return f"{ports.HOST}:{self.port}"


@dataclass(frozen=True)
class Login:
    """The one user of a secure listener; the password also opens the key stores."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class SecureBroker:
    """A broker that runs, and what a client needs for its listener with TLS and SASL."""

    plain: Broker
    port: int
    login: Login
    certificates: Certificates

    @property
    def bootstrap(self) -> str:
        return f"{ports.HOST}:{self.port}"


@dataclass(frozen=True)
class _Note:
    """What `broker.json` remembers of the last start."""

    process: Process
    port: int


def default_data() -> Path:
    return home() / "kafka"


def jars() -> Path:
    """The broker's jars, downloaded at the first call on a machine."""
    return fetch("kafka")


def start(
    data: Path, port: int | None = None, *, die_with_parent: bool = False, advertised: int | None = None
) -> Broker:
    """Start the broker of a data folder and wait until it answers; one that runs is returned as it is.

    Without `port`, it is the folder's last one or 9092, or a free one if that is taken.
    """
    data = data.absolute()
    _make_folder(data)
    with (data / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = status(data)
        if running:
            if port not in (None, running.port):
                raise PreconditionError(
                    f"the broker of {data} runs on port {running.port}, not {port};"
                    " stop it first: icestream kafka stop"
                )
            return running
        chosen = _choose_port(data, port)
        try:
            return _start(data, chosen, die_with_parent, advertised=advertised)
        except PreconditionError:
            # Somebody may have taken the port between the look and the start.
            if port is not None or ports.is_free(chosen):
                raise
        return _start(data, ports.free_port(), die_with_parent, advertised=advertised)


def status(data: Path) -> Broker | None:
    """The broker of a data folder, or None if it does not run."""
    note = _read_note(data)
    return Broker(note.process.pid, note.port, data.absolute()) if note and note.process.is_alive() else None


def stop(data: Path) -> bool:
    """Stop the broker in good order, by force if it takes too long; False if none ran."""
    note = _read_note(data)
    if note is None or not note.process.is_alive():
        return False
    note.process.send(signal.SIGTERM)
    if not note.process.wait(_STOP_S):
        kill(data)
    return True


def kill(data: Path) -> bool:
    """Stop the broker as a power cut would; False if none ran."""
    note = _read_note(data)
    if note is None or not note.process.is_alive():
        return False
    note.process.send(signal.SIGKILL)
    note.process.wait(_STOP_S)
    return True


@contextmanager
def running_broker(data: Path, port: int | None = None, *, advertised: int | None = None) -> Iterator[Broker]:
    """A broker for the length of a `with` block; it ends with this process at the latest."""
    broker = start(data, port, die_with_parent=True, advertised=advertised)
    try:
        yield broker
    finally:
        stop(data)


@contextmanager
def running_secure_broker(data: Path, login: Login) -> Iterator[SecureBroker]:
    """A broker of a new folder that listens with TLS and SASL too, for the length of a `with` block."""
    data = data.absolute()
    _make_folder(data)
    stores = certificates(data / "tls", login.password)
    port = ports.free_port()
    secure = SecureListener(
        ports.free_port(avoid=port),
        stores.keystore,
        stores.truststore_pkcs12,
        stores.password,
        login.user,
        login.password,
    )
    broker = _start(data, port, True, secure, [f"{SCRAM}=[name={login.user},password={login.password}]"])
    try:
        yield SecureBroker(broker, secure.port, login, stores)
    finally:
        stop(data)


def _start(
    data: Path,
    port: int,
    die_with_parent: bool,
    secure: SecureListener | None = None,
    users: Sequence[str] = (),
    advertised: int | None = None,
) -> Broker:
    program, library = java(), jars()
    # Made anew at each start: the ports may have changed.
    taken = [port, *([secure.port] if secure else [])]
    (data / "server.properties").write_text(
        server_properties(data / "topics", port, ports.free_port(avoid=taken), secure, advertised)
    )
    (data / "log4j2.properties").write_text(logging_properties(data / "server.log"))
    base = [program, f"-Dlog4j2.configurationFile={data / 'log4j2.properties'}", "-cp", f"{library}/*"]
    _format(data, base, users)
    command = [*base[:1], "-Xms256m", "-Xmx512m", "-XX:+ExitOnOutOfMemoryError", *base[1:], "kafka.Kafka"]
    process = spawn(
        [*command, str(data / "server.properties")],
        output=data / "output.log",
        die_with_parent=die_with_parent,
    )
    try:
        _write_note(data, _Note(process, port))
        _wait_until_ready(process, port, data)
    except BaseException:
        process.send(signal.SIGKILL)
        process.wait(_STOP_S)
        raise
    return Broker(process.pid, port, data)


def _format(data: Path, base: list[str], users: Sequence[str]) -> None:
    formatted = data / "cluster-id"
    if formatted.exists():
        return
    # No id yet: whatever lies there is half a format of an interrupted start.
    shutil.rmtree(data / "topics", ignore_errors=True)
    cluster_id = new_cluster_id()
    options = ["format", "-t", cluster_id, "-c", str(data / "server.properties")]
    options += [option for user in users for option in ("--add-scram", user)]
    ran = subprocess.run(
        [*base[:1], "-XX:TieredStopAtLevel=1", *base[1:], "kafka.tools.StorageTool", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if ran.returncode != 0:
        reason = (ran.stderr or ran.stdout).strip().splitlines()[-1:] or ["no reason given"]
        raise PreconditionError(
            f"cannot prepare {data} for Kafka: {reason[0]}; choose another folder with --data"
        )
    formatted.write_text(cluster_id + "\n")


def _wait_until_ready(process: Process, port: int, data: Path) -> None:
    deadline = time.monotonic() + _READY_S
    cluster_id = (data / "cluster-id").read_text().strip()
    while not (ports.is_listening(port) and _answers(port, cluster_id)):
        if not process.is_alive():
            raise PreconditionError(f"the Kafka broker of {data} ended while starting: {_last_error(data)}")
        if time.monotonic() > deadline:
            raise PreconditionError(
                f"the Kafka broker of {data} gives no answer on port {port} after {_READY_S:.0f} s;"
                f" see {data}/server.log"
            )
        time.sleep(0.1)


def _answers(port: int, cluster_id: str) -> bool:
    """Whether it is our broker that answers there, and takes requests."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"{ports.HOST}:{port}", "log_level": 0})
    try:
        metadata = admin.list_topics(timeout=0.5)
    except KafkaException:
        return False
    return bool(metadata.brokers) and metadata.cluster_id == cluster_id


def _last_error(data: Path) -> str:
    """The cause that the broker logged last; of a chain of causes the one before the bare system error."""
    for name in ("server.log", "output.log"):
        file = data / name
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        causes = [line for line in lines if "KafkaException: " in line]
        found = causes or [line for line in lines if " ERROR " in line or "Error" in line]
        if found:
            return f"{found[-1].removeprefix('Caused by: ').strip()} (see {file})"
    return f"see {data}/server.log"


def _make_folder(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PreconditionError(
            f"the folder {data} cannot be created ({error.strerror}); choose another with --data"
        ) from error
    require_space(data, _NEEDED_MB)


def _choose_port(data: Path, asked: int | None) -> int:
    if asked is not None:
        if not ports.is_free(asked):
            raise PreconditionError(
                f"port {asked} is taken; stop what listens there or choose another with --port"
            )
        return asked
    note = _read_note(data)
    wanted = note.port if note else USUAL_PORT
    return wanted if ports.is_free(wanted) else ports.free_port()


def _read_note(data: Path) -> _Note | None:
    try:
        note = json.loads((data / "broker.json").read_text())
        return _Note(Process(note["pid"], note["started"]), note["port"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise PreconditionError(
            f"{data / 'broker.json'} is damaged; end the broker by hand, then delete it"
        ) from None


def _write_note(data: Path, note: _Note) -> None:
    content = {"pid": note.process.pid, "started": note.process.started, "port": note.port}
    draft = data / "broker.json.new"
    draft.write_text(json.dumps(content) + "\n")
    draft.replace(data / "broker.json")
