"""The nine steps that make a running stack useful: topics, warehouse, tables, connectors, Trino's catalog.

Every step may run again: it looks first, and says what it found. Called by `icestream stack start`, and by
`icestream stack init` inside of the container of a compose stack.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from icestream.api.errors import IcestreamError, NotFoundError, PreconditionError
from icestream.stack.backend import Endpoints
from icestream.stack.running import answers
from icestream.stack.settings import Settings
from icestream.stack.trino_client import Trino, TrinoRefused, identifier, quoted

CONTROL_TOPIC: Final = "control-iceberg"
PARTITIONS: Final = 3
SERVICE: Final = "s3tables"
REGION: Final = "us-east-1"
_HEALTH_PATHS: Final = {"/minio/health/live": "healthy", "/moto-api/": "healthy (moto stands in for MinIO)"}
_ASK_S: Final = 30.0


@dataclass(frozen=True)
class Step:
    title: str
    run: Callable[[], str]
    """Does it, unless it is done, and says what is there now."""


@dataclass(frozen=True)
class Log:
    """One kind of log under the names of these settings."""

    kind: str
    topic: str
    table: str

    @property
    def connector(self) -> str:
        return f"iceberg-sink-{self.topic}"


def logs(settings: Settings) -> list[Log]:
    topics = {"api": settings.api_topic, "error": settings.error_topic, "audit": settings.audit_topic}
    return [Log(kind, topic, f"{settings.namespace}.{topic}") for kind, topic in topics.items()]


def steps(
    settings: Settings,
    endpoints: Endpoints,
    *,
    patience_s: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Step]:
    work = _Work(settings, endpoints, patience_s, clock, sleep)
    return [
        Step("source cluster", lambda: work.healthy(endpoints.source)),
        Step("destination cluster", lambda: work.healthy(endpoints.destination)),
        Step("control topic", lambda: work.topic(CONTROL_TOPIC, 1)),
        Step("data topics", work.topics),
        Step("warehouse", work.warehouse),
        Step("namespace", work.namespace),
        Step("tables", work.tables),
        Step("connectors", work.connectors),
        Step("Trino catalog", work.trino_catalog),
    ]


def connector_configs(settings: Settings, endpoints: Endpoints) -> dict[str, dict[str, str]]:
    """The connectors by name. The login is in them: so `icestream sql` and `verify` need no other."""
    from icestream.embedded.minio_tables import LOG_TABLES

    catalog = catalog_settings(settings, endpoints)
    by_kind = {log.kind: log for log in LOG_TABLES}
    return {
        log.connector: {
            **replace(by_kind[log.kind], topic=log.topic).connector_config(catalog),
            "iceberg.tables": log.table,
        }
        for log in logs(settings)
    }


def catalog_settings(settings: Settings, endpoints: Endpoints) -> dict[str, str]:
    login = {"access-key-id": settings.user, "secret-access-key": settings.password}
    return {
        "iceberg.catalog": settings.warehouse,
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": endpoints.catalog,
        "iceberg.catalog.warehouse": settings.warehouse,
        "iceberg.catalog.rest.sigv4-enabled": "true",
        "iceberg.catalog.rest.signing-name": SERVICE,
        "iceberg.catalog.rest.signing-region": REGION,
        "iceberg.catalog.s3.endpoint": endpoints.destination,
        "iceberg.catalog.s3.path-style-access": "true",
        "iceberg.catalog.client.region": REGION,
        **{f"iceberg.catalog.{part}.{key}": value for part in ("rest", "s3") for key, value in login.items()},
    }


@dataclass(frozen=True)
class _Work:
    settings: Settings
    endpoints: Endpoints
    patience_s: float
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def healthy(self, address: str) -> str:
        for _ in self._tries():
            for path, said in _HEALTH_PATHS.items():
                if answers(address + path):
                    return f"{said} at {address}"
        raise PreconditionError(f"{address} is not healthy; look at `icestream stack status` and the logs")

    def topic(self, name: str, partitions: int) -> str:
        from icestream.embedded.topics import ensure_topic

        is_new = ensure_topic(self.endpoints.bootstrap, name, partitions)
        return f"{name} {'created' if is_new else 'exists'}"

    def topics(self) -> str:
        return ", ".join(self.topic(log.topic, PARTITIONS) for log in logs(self.settings))

    def warehouse(self) -> str:
        name = self.settings.warehouse
        # As MinIO AIStor makes them; of an existing one it says 409.
        status, said = self._signed("POST", "/v1/warehouses", {"name": name})
        if status in (200, 201, 204):
            return f"{name} created"
        if status == 409:
            return f"{name} exists"
        raise PreconditionError(f"the warehouse '{name}' was not created: {status} {said[:200]}")

    def namespace(self) -> str:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError

        try:
            with self._catalog() as catalog:
                catalog.create_namespace(self.settings.namespace)
        except NamespaceAlreadyExistsError:
            return f"{self.settings.namespace} exists"
        return f"{self.settings.namespace} created"

    def tables(self) -> str:
        from pyiceberg.exceptions import TableAlreadyExistsError

        from icestream.embedded.minio_tables import LOG_TABLES

        by_kind = {log.kind: log for log in LOG_TABLES}
        said = []
        with self._catalog() as catalog:
            for log in logs(self.settings):
                made = by_kind[log.kind]
                try:
                    catalog.create_table(log.table, made.schema, partition_spec=made.spec)
                    said.append(f"{log.table} created")
                except TableAlreadyExistsError:
                    said.append(f"{log.table} exists")
        return ", ".join(said)

    def connectors(self) -> str:
        from icestream.client import ConnectClient

        said = []
        with ConnectClient(self.endpoints.worker) as client:
            for _ in self._tries():
                if client.is_healthy():
                    break
            for name, config in connector_configs(self.settings, self.endpoints).items():
                said.append(f"{name} {_put(client, name, config)}")
            for name in connector_configs(self.settings, self.endpoints):
                self._until_running(client, name)
        return ", ".join(said)

    def trino_catalog(self) -> str:
        if self.endpoints.trino is None:
            return "skipped: the stack runs without Trino; `icestream sql` asks Spark"
        trino, name = Trino(self.endpoints.trino), self.settings.warehouse
        # Anew each time: the addresses in it may have changed, and nothing is kept in it.
        trino.run(f"DROP CATALOG IF EXISTS {identifier(name)}")
        for words in _SIGNING:
            try:
                trino.run(_create_catalog(self.settings, self.endpoints, words))
            except TrinoRefused as error:
                if words is _SIGNING[-1] or "iceberg.rest-catalog." not in str(error):
                    raise
            else:
                break
        tables = trino.run(f"SHOW TABLES FROM {identifier(name)}.{identifier(self.settings.namespace)}").rows
        return f"{name} created, with {len(tables)} tables"

    def _until_running(self, client: Any, name: str) -> None:
        state = "UNASSIGNED"
        for _ in self._tries():
            view = client.status(name)
            state = view.state
            if state == "FAILED":
                raise IcestreamError(
                    f"the connector {name} failed: {(view.trace or 'no trace').strip()[:500]}"
                )
            if state == "RUNNING":
                return
        raise IcestreamError(f"the connector {name} is {state} after {self.patience_s:.0f} s, not RUNNING")

    def _tries(self) -> Iterator[None]:
        deadline = self.clock() + self.patience_s
        while True:
            yield
            if self.clock() > deadline:
                return
            self.sleep(0.5)

    def _catalog(self) -> Any:
        from icestream.connectors.iceberg.catalogs.opening import open_catalog

        return open_catalog(catalog_settings(self.settings, self.endpoints))

    def _signed(self, verb: str, path: str, body: Any) -> tuple[int, str]:
        try:
            from botocore.auth import SigV4Auth
            from botocore.awsrequest import AWSRequest
            from botocore.credentials import Credentials
        except ModuleNotFoundError:
            raise PreconditionError("boto3 is missing; run: pip install 'icestream[stack]'") from None
        content = json.dumps(body).encode()
        url = self.endpoints.catalog + path
        headers = {
            "Content-Type": "application/json",
            "x-amz-content-sha256": hashlib.sha256(content).hexdigest(),
        }
        request = AWSRequest(verb, url, data=content, headers=headers)
        login = Credentials(self.settings.user, self.settings.password)
        SigV4Auth(login, SERVICE, REGION).add_auth(request)
        target = urlsplit(url)
        connection = HTTPConnection(target.hostname or "", target.port or 80, timeout=_ASK_S)
        try:
            connection.request(verb, target.path, content, dict(request.headers.items()))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, HTTPException) as error:
            raise PreconditionError(f"the catalog does not answer at {url}: {error}") from error
        finally:
            connection.close()


def _put(client: Any, name: str, config: dict[str, str]) -> str:
    try:
        before = client.config(name)
    except NotFoundError:
        client.put_config(name, config)
        return "created"
    if {key: value for key, value in before.items() if key != "name"} == config:
        return "exists"
    client.put_config(name, config)
    return "changed"


_SIGNING: Final = (
    {"iceberg.rest-catalog.security": "SIGV4", "iceberg.rest-catalog.signing-name": SERVICE},
    {"iceberg.rest-catalog.sigv4-enabled": "true"},
)
"""How Trino is told to sign: since 477, and before."""


def _create_catalog(settings: Settings, endpoints: Endpoints, signing: dict[str, str]) -> str:
    properties = {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": endpoints.catalog,
        "iceberg.rest-catalog.warehouse": settings.warehouse,
        **signing,
        "fs.native-s3.enabled": "true",
        "s3.endpoint": endpoints.destination,
        "s3.region": REGION,
        "s3.path-style-access": "true",
        "s3.aws-access-key": settings.user,
        "s3.aws-secret-key": settings.password,
    }
    inner = ",\n".join(f"  {identifier(key)} = {quoted(value)}" for key, value in properties.items())
    return f"CREATE CATALOG {identifier(settings.warehouse)} USING iceberg WITH (\n{inner})"


def seed_queries(settings: Settings) -> list[str]:
    """The queries that show that it works, in Trino's SQL."""
    names = f"{settings.warehouse}.{settings.namespace}"
    return [
        "SHOW CATALOGS",
        f"SHOW TABLES FROM {names}",
        f"SELECT time, name, bucket, object FROM {names}.{settings.api_topic} LIMIT 10",
        'SELECT bucket, name, time, "callInfo"."httpStatusCode" AS status,'
        ' "callInfo"."sourceHost" AS client_ip\n'
        f"FROM {names}.{settings.api_topic} WHERE bucket IS NOT NULL ORDER BY time DESC LIMIT 20",
        "SELECT "
        + ", ".join(f"(SELECT count(*) FROM {names}.{log.topic}) AS {log.topic}" for log in logs(settings)),
    ]
