"""Which processes there are for which programs, without starting any."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.embedded import nginx, rest_catalog, trino
from icestream.stack.plan import Plan, Programs, moved_ports
from icestream.stack.settings import Settings
from icestream.stack.steps import connector_configs


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_catalog, "command", lambda: ["java"])


def plan(tmp_path: Path, *, minio: str | None = "/minio", balancer: str | None = "/nginx") -> Plan:
    ports = iter(range(30_000, 31_000))
    programs = Programs(minio, balancer, Path("/trino"), "/java")
    return Plan.make(Settings(), programs, tmp_path, lambda _, wished: wished or next(ports))


def names(made: Plan) -> list[str]:
    return [part.name for stage in made.stages() for part in stage]


def test_the_parts_have_the_names_of_the_containers(tmp_path: Path) -> None:
    clusters = [f"minio-{cluster}{n}" for cluster in ("source", "dest") for n in (1, 2, 3, 4)]
    own = ["iceberg-catalog", "iceberg-signatures"]
    assert names(plan(tmp_path)) == [
        *("kafka", *clusters, *own, "nginx-source", "nginx-dest", "kafka-connect", "trino")
    ]


def test_the_catalog_is_under_the_destination_and_ports_are_the_documented_ones(tmp_path: Path) -> None:
    endpoints = plan(tmp_path).endpoints
    assert endpoints.catalog == "http://127.0.0.1:9010/_iceberg"
    assert endpoints.bootstrap == "127.0.0.1:9092" and endpoints.trino == "http://127.0.0.1:9999"
    assert moved_ports(Settings(), endpoints) == []
    moved = moved_ports(Settings(trino_port=1), endpoints)
    assert moved == ["TRINO_PORT is 1, which is taken: http://127.0.0.1:9999 instead"]


def test_without_nginx_the_first_node_has_the_known_port(tmp_path: Path) -> None:
    made = plan(tmp_path, balancer=None)
    parts = {part.name: part for stage in made.stages() for part in stage}
    assert parts["minio-source1"].address == "http://127.0.0.1:9000" and "nginx-dest" not in parts
    assert made.endpoints.catalog == parts["iceberg-signatures"].address


def test_without_minio_one_moto_stands_in_for_each_cluster(tmp_path: Path) -> None:
    made = plan(tmp_path, minio=None)
    assert [name for name in names(made) if "moto" in name] == ["moto-source", "moto-dest"]
    assert made.endpoints.destination_console is None


def test_no_password_is_in_a_command_and_its_file_is_its_owners(tmp_path: Path) -> None:
    programs = Programs("/minio", "/nginx", Path("/trino"), "/java")
    ports = iter(range(30_000, 31_000))
    made = Plan.make(Settings(password="s3cret-word"), programs, tmp_path, lambda *_: next(ports))
    assert not any(
        "s3cret-word" in word for stage in made.stages() for part in stage for word in part.command
    )
    holders = [file for file in tmp_path.rglob("*") if file.is_file() and "s3cret-word" in file.read_text()]
    assert [(file.name, file.stat().st_mode & 0o777) for file in holders] == [("front.json", 0o600)]


def test_the_connectors_have_the_documented_config(tmp_path: Path) -> None:
    found = connector_configs(Settings(), plan(tmp_path).endpoints)
    assert [*found] == [f"iceberg-sink-{topic}" for topic in ("apilogs", "errorlogs", "auditlogs")]
    assert (
        found["iceberg-sink-apilogs"].items()
        >= {
            "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
            "tasks.max": "2",
            "topics": "apilogs",
            "iceberg.tables": "streaming.apilogs",
            "iceberg.tables.auto-create-enabled": "false",
            "iceberg.tables.evolve-schema-enabled": "true",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": "http://127.0.0.1:9010/_iceberg",
            "iceberg.catalog.warehouse": "kafkawarehouse",
            "iceberg.catalog.rest.sigv4-enabled": "true",
            "iceberg.catalog.rest.signing-name": "s3tables",
            "iceberg.catalog.rest.signing-region": "us-east-1",
            "iceberg.catalog.s3.endpoint": "http://127.0.0.1:9010",
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.control.topic": "control-iceberg",
            "iceberg.control.commit.interval-ms": "10000",
            "iceberg.control.commit.timeout-ms": "60000",
        }.items()
    )


def test_nginx_keeps_the_address_that_was_signed_and_one_visitor_at_one_console() -> None:
    text = nginx.configuration(nginx.Balancer(9010, [1, 2], 9011, [3, 4], 5))
    assert text.count("proxy_set_header Host $http_host;") == 4
    assert "ip_hash;" in text and "location /_iceberg/ { proxy_pass http://catalog;" in text
    assert "listen 127.0.0.1:9010;" in text and "listen 127.0.0.1:9011;" in text


def test_trino_leaves_nothing_in_the_folder_from_which_it_is_started(tmp_path: Path) -> None:
    trino.Server("/java", Path("/trino"), 9999, tmp_path).write_configuration()
    lines = (tmp_path / "config.properties").read_text().splitlines()
    config = dict(line.split("=", 1) for line in lines)
    assert Path(config["http-server.log.path"]).is_relative_to(tmp_path)
