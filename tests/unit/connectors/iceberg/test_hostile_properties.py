"""No connector, catalog server or table makes a worker load code, by whatever property."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.catalogs.aws_login import runs_out
from icestream.connectors.iceberg.catalogs.keys import SESSION_EXPIRES
from icestream.connectors.iceberg.catalogs.opening import catalog_properties, open_catalog
from icestream.connectors.iceberg.files.stage import StageWriter
from icestream.connectors.iceberg.settings import problems, warnings
from icestream.connectors.iceberg.table import IcebergTable

SCHEMA = Schema(NestedField(1, "id", LongType()))


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when `attack.Run` is imported or made."""
    checkpoint = tmp_path / "ran"
    (tmp_path / "attack.py").write_text(
        f"import pathlib\npathlib.Path({str(checkpoint)!r}).touch()\n"
        "class Run:\n    def __init__(self, *given, **named): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return checkpoint


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "sql",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
    }


def with_table(config: dict[str, str], folder: Path, **properties: str) -> Path:
    """A table whose metadata somebody has edited; the file with its metadata."""
    catalog = open_catalog(config)
    catalog.create_namespace("ns")
    catalog.create_table("ns.t", SCHEMA)
    catalog.close()
    (file,) = (folder / "warehouse" / "ns" / "t" / "metadata").glob("*.metadata.json")
    metadata = json.loads(file.read_text())
    file.write_text(json.dumps({**metadata, "properties": {**metadata["properties"], **properties}}))
    return file


@pytest.mark.parametrize(
    "key",
    [
        "py-io-impl",
        "py-catalog-impl",
        "s3.retry-strategy-impl",
        "auth.impl",
        "auth",
        "ssl",
        "ssl.client.key",
        "s3.signer",
        "metrics-reporter-impl",
        "gcs.session-kwargs",
    ],
)
def test_a_connector_names_no_code_and_no_files(key: str, config: dict[str, str]) -> None:
    hostile = {**config, f"iceberg.catalog.{key}": "attack.Run"}
    (problem,) = problems(hostile)
    assert problem.key == f"iceberg.catalog.{key}"
    assert "cannot be used" in problem.message
    assert key not in catalog_properties(hostile)


def test_a_config_that_was_stored_before_loads_no_code(ran: Path, config: dict[str, str]) -> None:
    hostile = {**config, "iceberg.catalog.py-io-impl": "attack.Run"}
    open_catalog(hostile).close()
    with pytest.raises(ConfigError):
        open_catalog({**hostile, "iceberg.catalog.uri": "attack+run://x"})
    assert not ran.exists()


@pytest.mark.parametrize(
    "uri",
    [
        "mysql+attack://host/db",
        "postgresql+attack://host/db",
        "postgresql://host/db?service=other&passfile=/etc/passwd",
        "sqlite+attack:///x",
        "",
    ],
)
def test_an_address_names_no_driver_and_no_file(uri: str, config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"iceberg.catalog.uri"):
        catalog_properties({**config, "iceberg.catalog.uri": uri})


def test_a_key_that_is_not_on_the_list_goes_nowhere_and_is_told(config: dict[str, str]) -> None:
    strange = {**config, "iceberg.catalog.s3.multipart.size": "1", "iceberg.catalog.anything": "x"}
    assert catalog_properties(strange) == catalog_properties(config)
    assert [one.split("'")[1] for one in warnings(strange)] == [
        "iceberg.catalog.anything",
        "iceberg.catalog.s3.multipart.size",
    ]
    assert problems(strange) == []


@pytest.mark.parametrize("key", ["py-io-impl", "s3.retry-strategy-impl"])
def test_a_table_brings_no_code_for_its_files(
    key: str, ran: Path, tmp_path: Path, config: dict[str, str]
) -> None:
    with_table(config, tmp_path, **{key: "attack.Run"})
    plan = IcebergTable(open_catalog(config), "ns.t", "job", write_props={}).plan({})
    assert key not in plan.io_properties
    assert not ran.exists()


def test_a_table_brings_no_code_for_its_places(ran: Path, tmp_path: Path, config: dict[str, str]) -> None:
    with_table(config, tmp_path, **{"write.py-location-provider.impl": "attack.Run"})
    table = IcebergTable(open_catalog(config), "ns.t", "job", write_props={})
    with pytest.raises(ConfigError, match=r"ns\.t.*'attack\.Run' is a Python class"):
        table.plan({})
    # Below all lists: PyIceberg itself asks the table at every commit.
    with pytest.raises(ConfigError, match="names a Python class"):
        open_catalog(config).load_table("ns.t").location_provider()
    assert not ran.exists()


def test_a_plan_brings_no_code_to_the_pipeline(ran: Path, tmp_path: Path, config: dict[str, str]) -> None:
    with_table(config, tmp_path)
    plan = IcebergTable(open_catalog(config), "ns.t", "job", write_props={}).plan({})
    for hostile in (
        replace(plan, properties={"write.py-location-provider.impl": "attack.Run"}),
        replace(plan, io_properties={"py-io-impl": "attack.Run"}),
    ):
        with pytest.raises(ConfigError, match="names a Python class"):
            StageWriter(hostile)
    assert not ran.exists()


# -- a hostile server --

RUN = "attack.Run"


class Hostile(BaseHTTPRequestHandler):
    """A REST catalog that sends more than it should, with its config and with its table."""

    metadata: dict[str, Any]

    def do_GET(self) -> None:
        extra = {"py-io-impl": RUN, "s3.retry-strategy-impl": RUN, "s3.region": "there"}
        if self.path.startswith("/v1/config"):
            login = {"type": "custom", "impl": RUN, "custom": {}}
            answer: Any = {"overrides": {**extra, "auth": login}, "defaults": {"py-catalog-impl": RUN}}
        else:
            answer = {
                "metadata-location": self.metadata["location"],
                "metadata": self.metadata,
                "config": extra,
            }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture
def server(config: dict[str, str], tmp_path: Path) -> Iterator[str]:
    Hostile.metadata = json.loads(with_table(config, tmp_path, **{"py-io-impl": RUN}).read_text())
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()
        thread.join()


def test_a_server_brings_no_code(ran: Path, server: str, config: dict[str, str]) -> None:
    hostile = {**config, "iceberg.catalog.type": "rest", "iceberg.catalog.uri": server}
    catalog = open_catalog(hostile)
    plan = IcebergTable(catalog, "ns.t", "job", write_props={}).plan({})
    # What a server may say is taken, even so.
    assert plan.io_properties == {"s3.region": "there"}
    assert not ran.exists()


REST = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1:1"}
MYSQL = {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:mysql://127.0.0.1:1/x"}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (REST, "iceberg.hadoop.fs.s3a.connection.establish.timeout"),
        (MYSQL, "iceberg.catalog.jdbc.connectTimeout"),
        (REST, "iceberg.catalog.rest.client.socket-timeout-ms"),
        (REST, "iceberg.catalog.rest.client.connection-timeout-ms"),
        (
            {
                **REST,
                "iceberg.catalog.rest.sigv4-enabled": "true",
                "iceberg.catalog.rest.signing-region": "us-east-1",
                "iceberg.catalog.rest.access-key-id": "a",
                "iceberg.catalog.rest.secret-access-key": "b",
            },
            "iceberg.catalog.rest.sigv4.max-retries",
        ),
        (
            {**REST, "iceberg.catalog.client.assume-role.arn": "arn:aws:iam::1:role/a"},
            "iceberg.catalog.client.assume-role.timeout-sec",
        ),
    ],
)
@pytest.mark.parametrize("value", ["9" * 5000, "9" * 400, "-1", "many", "²"])
def test_a_number_that_is_none_is_told_of_its_key(config: dict[str, str], key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_catalog({**config, key: value})
    assert [problem.key for problem in refused.value.problems] == [key]


def test_a_server_that_lends_until_no_moment_has_lent_for_ever() -> None:
    now = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    assert not runs_out({SESSION_EXPIRES: "9" * 5000}, now)


def test_the_path_of_a_change_leads_no_deeper_than_types_can_be() -> None:
    key = "iceberg.tables.cdc-field"
    assert [one.key for one in problems({**REST, "iceberg.tables": "a.b", key: "a." * 100_000 + "a"})] == [
        key
    ]
    assert problems({**REST, "iceberg.tables": "a.b", key: "_cdc.op"}) == []
