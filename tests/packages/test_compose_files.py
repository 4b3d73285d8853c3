"""deploy/compose is what people of the seed's stack have: names, images, ports, variables, volumes, each by
name.

No Docker engine is needed: the structure is read, nginx checks its own configs, the script calls a `docker`
that writes down what it is asked for. Nobody has started these containers in a test.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from icestream.stack.compose import INIT, PARTS
from icestream.stack.settings import read_env, settings_from, variables
from tests.docs_commands import ROOT
from tests.kit.programs import find_program, needs_program

FOLDER: Final = ROOT / "deploy" / "compose"
STACK: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "docker-compose.yaml").read_text())
SERVICES: Final[dict[str, Any]] = STACK["services"]
S3: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "s3" / "docker-compose.yml").read_text())
SCRIPT: Final = "kafka-connect-iceberg-sink.sh"
DEFAULT: Final = re.compile(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}")
SOURCES: Final = [f"minio-source{number}" for number in range(1, 5)]
DESTINATIONS: Final = [f"minio-dest{number}" for number in range(1, 5)]


def resolved(text: str) -> str:
    """With the defaults in place of variables."""
    return DEFAULT.sub(lambda found: found[2] or "", text)


def test_there_are_fourteen_containers_with_the_names_of_the_seed() -> None:
    names = ["kafka", *SOURCES, "nginx-source", *DESTINATIONS, "nginx-dest", "kafka-connect", "trino", INIT]
    assert list(SERVICES) == names
    assert len(names) == 14
    assert [service["container_name"] for service in SERVICES.values()] == names
    assert [*PARTS, INIT] == names


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("kafka", "confluentinc/cp-kafka:7.5.0"),
        ("trino", "trinodb/trino:477"),
        ("nginx-source", "nginx:alpine"),
        ("nginx-dest", "nginx:alpine"),
        ("kafka-connect", "icestream:latest"),
        (INIT, "icestream:latest"),
        *((name, "praveenminio/eos:log") for name in SOURCES),
        *((name, "quay.io/minio/aistor/minio:EDGE.2025-12-13T08-46-12Z") for name in DESTINATIONS),
    ],
)
def test_images_are_those_of_the_seed_but_for_ours(name: str, image: str) -> None:
    assert resolved(SERVICES[name]["image"]) == image


@pytest.mark.parametrize(
    ("name", "ports"),
    [
        ("kafka", ["9092:9092"]),
        ("kafka-connect", ["8083:8083"]),
        ("nginx-source", ["9000:9000", "9001:9001"]),
        ("nginx-dest", ["9010:9000", "9011:9001"]),
        ("trino", ["9999:8080"]),
        (INIT, []),
        *((name, []) for name in (*SOURCES, *DESTINATIONS)),
    ],
)
def test_ports_are_those_of_the_seed(name: str, ports: list[str]) -> None:
    assert [resolved(port) for port in SERVICES[name].get("ports", [])] == ports


def test_every_default_in_the_file_is_that_of_the_sample() -> None:
    used = dict(DEFAULT.findall((FOLDER / "docker-compose.yaml").read_text()))
    sample = variables()
    assert {name: value for name, value in used.items() if name != "ICESTREAM_IMAGE"} == {
        name: sample[name] for name in used if name != "ICESTREAM_IMAGE"
    }
    assert set(sample) <= set(used)


def test_the_sample_has_every_variable_with_its_default() -> None:
    assert read_env(FOLDER / ".env.sample") == variables()
    assert settings_from({}, FOLDER / ".env.sample") == settings_from({})
    assert (FOLDER / ".gitignore").read_text().splitlines() == [".env", "/plugins/"]


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_cluster_logs_into_kafka(name: str) -> None:
    told = {key: resolved(value) for key, value in SERVICES[name]["environment"].items() if "_LOG_" in key}
    assert told == {
        f"MINIO_LOG_{kind}_KAFKA_{key}": value
        for kind in ("API", "ERROR", "AUDIT")
        for key, value in (("ENABLE", "on"), ("BROKERS", "kafka:29092"), ("TOPIC", f"{kind.lower()}logs"))
    }


@pytest.mark.parametrize("name", [*SOURCES, *DESTINATIONS])
def test_every_node_has_a_volume_of_its_own_and_knows_its_cluster(name: str) -> None:
    assert SERVICES[name]["volumes"] == [f"{name}-data:/data"]
    assert f"http://{name[:-1]}{{1...4}}/data" in SERVICES[name]["command"]
    assert set(STACK["volumes"]) == {f"{node}-data" for node in (*SOURCES, *DESTINATIONS)}


def test_kafka_is_one_node_without_zookeeper() -> None:
    told = SERVICES["kafka"]["environment"]
    assert told["CLUSTER_ID"] == "MkU3OEVBNTcwNTJENDM2Qk"
    assert told["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert told["KAFKA_CONTROLLER_QUORUM_VOTERS"] == "1@kafka:29093"
    assert "PLAINTEXT://kafka:29092" in told["KAFKA_ADVERTISED_LISTENERS"]
    assert resolved(told["KAFKA_ADVERTISED_LISTENERS"]).endswith("PLAINTEXT_HOST://localhost:9092")


def test_worker_trino_and_the_network_are_those_of_the_seed() -> None:
    worker = SERVICES["kafka-connect"]
    assert worker["environment"]["CONNECT_GROUP_ID"] == "iceberg-connect-cluster"
    assert worker["environment"]["CONNECT_BOOTSTRAP_SERVERS"] == "kafka:29092"
    assert worker["command"] == ["/etc/confluent/docker/run"]
    assert SERVICES["trino"]["environment"]["CATALOG_MANAGEMENT"] == "dynamic"
    assert list(STACK["networks"]) == ["kafka-iceberg"]
    assert all(service["networks"] == ["kafka-iceberg"] for service in SERVICES.values())


def test_everybody_waits_for_what_it_needs_until_that_is_healthy() -> None:
    for name, service in SERVICES.items():
        assert "healthcheck" in service or name == INIT
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, (name, needed)
    assert set(SERVICES[INIT]["depends_on"]) == {
        "kafka",
        "kafka-connect",
        "nginx-source",
        "nginx-dest",
        "trino",
    }


@pytest.mark.parametrize("side", ["source", "dest"])
def test_nginx_balances_four_nodes_and_keeps_a_session_of_the_console_on_one(side: str) -> None:
    text = (FOLDER / f"nginx-{side}.conf").read_text()
    api, console = re.findall(r"upstream (?:api|console) \{(.*?)\}", text, re.DOTALL)
    assert re.findall(r"server (\S+);", api) == [f"minio-{side}{number}:9000" for number in range(1, 5)]
    assert re.findall(r"server (\S+);", console) == [f"minio-{side}{number}:9001" for number in range(1, 5)]
    assert "ip_hash;" in console
    assert re.findall(r"listen (\d+);", text) == ["9000", "9001"]
    assert f"./nginx-{side}.conf:/etc/nginx/nginx.conf:ro" in SERVICES[f"nginx-{side}"]["volumes"]


@needs_program("nginx")
@pytest.mark.parametrize("side", ["source", "dest"])
def test_nginx_takes_its_config(side: str, tmp_path: Path) -> None:
    text = (FOLDER / f"nginx-{side}.conf").read_text()
    # Names of containers are known in their network only.
    own = re.sub(rf"minio-{side}\d", "127.0.0.1", text).replace("/tmp/nginx.pid", f"{tmp_path}/nginx.pid")
    (tmp_path / "nginx.conf").write_text(own)
    nginx = find_program("nginx")
    ran = subprocess.run(
        [str(nginx), "-t", "-p", str(tmp_path), "-c", "nginx.conf", "-e", f"{tmp_path}/error.log"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """The folder with its script, and a `docker` that writes down what it is asked for."""
    folder = tmp_path / "compose"
    shutil.copytree(FOLDER, folder)
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(
        f'#!/bin/sh\necho "$MINIO_LICENSE: $*" >> {tmp_path}/calls\n[ "$1" != wait ] || echo "${{INIT:-0}}"\n'
    )
    docker.chmod(docker.stat().st_mode | stat.S_IXUSR)
    return folder


def script(
    stack: Path, *arguments: str, **environ: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What it printed, and what it asked Docker for, with the licence that Docker was given."""
    bare = {name: value for name, value in os.environ.items() if name != "MINIO_LICENSE"}
    ran = subprocess.run(
        [str(stack / SCRIPT), *arguments],
        # A port where nobody answers: `status` asks the worker.
        env={
            **bare,
            "PATH": f"{stack.parent}/bin:{os.environ['PATH']}",
            "KAFKA_CONNECT_PORT": "1",
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    calls = stack.parent / "calls"
    told = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return ran, [line for line in told if not line.endswith("compose version")]


def test_the_script_wants_a_licence_and_makes_the_env_file(stack: Path) -> None:
    ran, calls = script(stack, "start")
    assert ran.returncode == 1
    assert "MINIO_LICENSE is empty; set it in" in ran.stderr
    assert calls == []
    assert (stack / ".env").read_text() == (stack / ".env.sample").read_text()


def test_the_script_starts_waits_for_the_initialisation_and_tells_the_addresses(stack: Path) -> None:
    ran, calls = script(stack, "start", MINIO_LICENSE="x", TRINO_PORT="9998")
    assert ran.returncode == 0, ran.stderr
    assert calls == [
        "x: compose up --detach",
        f"x: wait {INIT}",
        f"x: compose logs --no-log-prefix {INIT}",
    ]
    assert "http://localhost:9998" in ran.stdout
    ran, _ = script(stack, "start", MINIO_LICENSE="x", INIT="3")
    assert ran.returncode == 1
    assert "the initialisation ended with 3" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["stop"], "stop"),
        (["status"], "ps --all"),
        (["logs"], "logs"),
        (["logs", "-f"], "logs -f"),
        (["logs", "-f", "kafka"], "logs -f kafka"),
        (["clean"], "down --volumes --remove-orphans"),
    ],
)
def test_the_other_verbs_of_the_script_need_no_licence(stack: Path, arguments: list[str], call: str) -> None:
    ran, calls = script(stack, *arguments)
    assert ran.returncode == 0, ran.stderr
    assert calls == [f"none: compose {call}"]


def test_an_unknown_verb_shows_the_usage(stack: Path) -> None:
    ran, calls = script(stack, "destroy")
    assert (ran.returncode, calls) == (2, [])
    assert "start | stop | status | logs [-f] [SERVICE…] | clean" in ran.stderr


@needs_program("shellcheck")
def test_shellcheck_has_nothing_to_say_of_the_script() -> None:
    ran = subprocess.run(
        ["shellcheck", str(FOLDER / SCRIPT)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_topics_into_s3_has_the_services_profiles_and_variables_of_the_seed() -> None:
    services = S3["services"]
    always = {name for name, service in services.items() if "profiles" not in service}
    assert always == {"redpanda", "minio", "minio-setup", "kafka-s3-connector"}
    assert {name for name, one in services.items() if one.get("profiles") == ["scaling"]} == {
        "kafka-s3-connector-2",
        "kafka-s3-connector-3",
    }
    assert {name for name, one in services.items() if one.get("profiles") == ["monitoring"]} == {
        "prometheus",
        "grafana",
    }
    told = {name: resolved(value) for name, value in services["kafka-s3-connector"]["environment"].items()}
    assert told["S3_BUCKET_NAME"] == "test-data-lake"
    assert told["S3_REGION"] == "us-east-1"
    assert told["CONNECT_GROUP_ID"] == "kafka-s3-connect-cluster"
    assert (told["BATCH_SIZE"], told["FLUSH_INTERVAL"]) == ("1000", "60")
    assert services["kafka-s3-connector"]["ports"] == ["8083:8083", "8081:8081"]
    assert "9001:9001" in services["minio"]["ports"]


def test_every_file_that_the_containers_mount_is_there() -> None:
    for folder, services in ((FOLDER, SERVICES), (FOLDER / "s3", S3["services"])):
        for service in services.values():
            for volume in service.get("volumes", []):
                place = volume.partition(":")[0]
                # Made by the script: connectors of a Java worker.
                if place.startswith(".") and place != "./plugins":
                    assert (folder / place).exists(), volume
