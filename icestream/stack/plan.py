"""Which processes make the stack on this machine: from settings, programs and ports to commands.

Called by `processes.py`. Nothing is started here; `stages` writes the files that parts read at their start.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.embedded import minio, nginx, rest_catalog, trino
from icestream.embedded.ports import HOST
from icestream.stack.backend import Endpoints, Say
from icestream.stack.running import Part
from icestream.stack.settings import Settings

if TYPE_CHECKING:
    from icestream.stack.processes import Wishes

NODES: Final = 4
GROUP: Final = "iceberg-connect-cluster"
_JAVA_PATIENCE_S: Final = 300.0
_CLUSTERS: Final = ("source", "dest")

ChoosePort = Callable[[str, int | None], int]


@dataclass(frozen=True)
class Programs:
    """What this machine has; None where something is missing, and `absent` says what to do."""

    minio: str | None
    nginx: str | None
    trino: Path | None
    trino_java: str | None
    absent: dict[str, str] = field(default_factory=dict)
    sends_audit: bool = False


def find_programs(wishes: Wishes, say: Say) -> Programs:
    """Look for the programs of others, build or fetch those that can be; say which are missing."""
    _require("boto3")
    absent: dict[str, str] = {}
    server = None if wishes.stand_in else minio.minio()
    if server is None and wishes.builds_minio and not wishes.stand_in:
        server = minio.build(say)
    if server is None:
        _require("moto")
        absent["minio"] = f"moto stands in, and forgets all when it stops; {minio.HOW_TO_GET_IT}"
    balancer = nginx.nginx()
    if balancer is None:
        absent["nginx"] = f"clients talk to the first node and to the catalog directly; {nginx.HOW_TO_GET_IT}"
    folder, java = None, None
    if wishes.with_trino:
        folder, java, why = _trino(say)
        if why:
            absent["trino"] = why
    for name, why in absent.items():
        say(f"without {name}: {why}")
    return Programs(server, balancer, folder, java, absent, wishes.sends_audit)


def _require(package: str) -> None:
    """Asked before anything is fetched or started, which takes minutes."""
    if find_spec(package) is None:
        raise PreconditionError(f"{package} is missing; run: pip install 'icestream[stack]'")


def _trino(say: Say) -> tuple[Path | None, str | None, str]:
    java = trino.trino_java()
    if java is None:
        return None, None, f"no Java {trino.OLDEST_JAVA} or newer was found; {trino.HOW_TO_GET_JAVA}"
    try:
        return trino.install(say), java, ""
    except IcestreamError as error:
        return None, None, str(error)


@dataclass(frozen=True)
class Plan:
    """All parts with their ports; the same plan starts what is missing of a stack that runs."""

    settings: Settings
    programs: Programs
    folder: Path
    ports: dict[str, int]

    @classmethod
    def make(cls, settings: Settings, programs: Programs, folder: Path, choose: ChoosePort) -> Plan:
        wished = {
            "kafka": settings.kafka_port,
            "source": settings.source_port,
            "dest": settings.destination_port,
            "source-console": settings.source_console_port,
            "dest-console": settings.destination_console_port,
            "worker": settings.worker_port,
            "trino": settings.trino_port,
        }
        inner = [
            f"{cluster}{kind}{n}" for cluster in _CLUSTERS for kind in ("", "-console") for n in range(1, 5)
        ]
        # The known ones first: no inner part takes a port that people know.
        found = {use: choose(use, port) for use, port in wished.items()}
        found |= {use: choose(use, None) for use in [*inner, "catalog", "front"]}
        if programs.nginx is None:
            for cluster in _CLUSTERS:
                found[f"{cluster}1"] = found[cluster]
                found[f"{cluster}-console1"] = found[f"{cluster}-console"]
        return cls(settings, programs, folder, found)

    @property
    def absent(self) -> dict[str, str]:
        return self.programs.absent

    @property
    def endpoints(self) -> Endpoints:
        destination = self._url("dest")
        has_console = self.programs.minio is not None
        return Endpoints(
            bootstrap=f"{HOST}:{self.ports['kafka']}",
            worker=self._url("worker"),
            source=self._url("source"),
            destination=destination,
            catalog=f"{destination if self.programs.nginx else self._url('front')}/_iceberg",
            trino=self._url("trino") if self.programs.trino else None,
            source_console=self._url("source-console") if has_console else None,
            destination_console=self._url("dest-console") if has_console else None,
        )

    def stages(self) -> list[list[Part]]:
        """What starts together; each stage needs those before it."""
        storage = [part for cluster in _CLUSTERS for part in self._storage(cluster)]
        balancers = [self._balancer(cluster) for cluster in _CLUSTERS] if self.programs.nginx else []
        last = [self._worker(), *([self._trino()] if self.programs.trino else [])]
        return [[self._kafka()], storage, [self._catalog()], [self._front(), *balancers], last]

    def _url(self, use: str) -> str:
        return f"http://{HOST}:{self.ports[use]}"

    def _data(self, name: str) -> Path:
        folder = self.folder / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _kafka(self) -> Part:
        address = f"{HOST}:{self.ports['kafka']}"
        return Part("kafka", (), address, f"http://{address}")

    def _storage(self, cluster: str) -> list[Part]:
        program = self.programs.minio
        if program is None:
            return [self._moto(cluster)]
        nodes = [
            minio.Node(
                self.ports[f"{cluster}{n}"],
                self.ports[f"{cluster}-console{n}"],
                self._data(f"minio-{cluster}{n}"),
            )
            for n in range(1, NODES + 1)
        ]
        targets = self._log_targets() if cluster == "source" else None
        login = minio.Login(self.settings.user, self.settings.password)
        return [
            Part(
                f"minio-{cluster}{n}",
                minio.node_command(program, node, nodes),
                f"http://{HOST}:{node.port}",
                f"http://{HOST}:{node.port}/minio/health/cluster",
                minio.node_environment(node, login, targets),
            )
            for n, node in enumerate(nodes, 1)
        ]

    def _log_targets(self) -> minio.LogTargets:
        topics = {
            "api": self.settings.api_topic,
            "error": self.settings.error_topic,
            "audit": self.settings.audit_topic,
        }
        return minio.LogTargets(f"{HOST}:{self.ports['kafka']}", topics, self.programs.sends_audit)

    def _moto(self, cluster: str) -> Part:
        port = self.ports[f"{cluster}1"]
        url = f"http://{HOST}:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        return Part(f"moto-{cluster}", command, url, f"{url}/moto-api/", note="stands in for MinIO")

    def _balancer(self, cluster: str) -> Part:
        assert self.programs.nginx is not None
        name = f"nginx-{cluster}"
        folder = self._data(name)
        (folder / "scratch").mkdir(exist_ok=True)
        has_minio = self.programs.minio is not None
        count = NODES if has_minio else 1
        balancer = nginx.Balancer(
            self.ports[cluster],
            [self.ports[f"{cluster}{n}"] for n in range(1, count + 1)],
            self.ports[f"{cluster}-console"] if has_minio else None,
            [self.ports[f"{cluster}-console{n}"] for n in range(1, count + 1)] if has_minio else (),
            self.ports["front"] if cluster == "dest" else None,
        )
        (folder / "nginx.conf").write_text(nginx.configuration(balancer))
        url = self._url(cluster)
        health = f"{url}/minio/health/live" if has_minio else f"{url}/moto-api/"
        return Part(name, nginx.command(self.programs.nginx, folder), url, health)

    def _catalog(self) -> Part:
        catalog = rest_catalog.Catalog(
            self.ports["catalog"],
            self._data("catalog") / "catalog.db",
            self.settings.warehouse,
            f"http://{HOST}:{self.ports['dest1']}",
            self.settings.user,
            self.settings.password,
        )
        url = self._url("catalog")
        return Part(
            "iceberg-catalog",
            rest_catalog.command(),
            url,
            f"{url}/v1/config",
            catalog.environment(),
            patience_s=_JAVA_PATIENCE_S,
        )

    def _front(self) -> Part:
        file = self._data("catalog") / "front.json"
        content = {
            "port": self.ports["front"],
            "catalog_port": self.ports["catalog"],
            "storage": f"http://{HOST}:{self.ports['dest1']}",
            "access_key": self.settings.user,
            "secret_key": self.settings.password,
        }
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as secret:
            json.dump(content, secret)
        url = self._url("front")
        command = [sys.executable, "-m", "icestream.embedded.signed_front", str(file)]
        return Part("iceberg-signatures", command, f"{url}/_iceberg", f"{url}/health")

    def _worker(self) -> Part:
        url = self._url("worker")
        lines = {
            "bootstrap.servers": f"{HOST}:{self.ports['kafka']}",
            "group.id": GROUP,
            "listeners": url,
            **{
                f"{kind}.storage.{key}": value
                for kind in ("config", "offset", "status")
                for key, value in (("topic", f"{GROUP}-{kind}"), ("replication.factor", "1"))
            },
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }
        file = self._data("worker") / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = [sys.executable, "-m", "icestream.cli.main", "distributed", str(file)]
        return Part("kafka-connect", command, url, f"{url}/health", patience_s=_JAVA_PATIENCE_S)

    def _trino(self) -> Part:
        assert self.programs.trino is not None and self.programs.trino_java is not None
        folder = self._data("trino")
        server = trino.Server(self.programs.trino_java, self.programs.trino, self.ports["trino"], folder)
        server.write_configuration()
        url = self._url("trino")
        return Part("trino", server.command(), url, f"{url}/v1/info", patience_s=_JAVA_PATIENCE_S)


def moved_ports(settings: Settings, endpoints: Endpoints) -> Sequence[str]:
    """What does not listen where its variable says, because somebody else does."""
    wished = {
        "SOURCE_API_PORT": (settings.source_port, endpoints.source),
        "DEST_API_PORT": (settings.destination_port, endpoints.destination),
        "KAFKA_EXTERNAL_PORT": (settings.kafka_port, endpoints.bootstrap),
        "KAFKA_CONNECT_PORT": (settings.worker_port, endpoints.worker),
        "TRINO_PORT": (settings.trino_port, endpoints.trino),
    }
    return [
        f"{variable} is {port}, which is taken: {address} instead"
        for variable, (port, address) in wished.items()
        if address is not None and not address.endswith(f":{port}")
    ]
