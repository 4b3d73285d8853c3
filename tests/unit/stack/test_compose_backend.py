"""The stack by Docker Compose, with a `docker` that writes down what it is asked for."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.stack.backend import Backend
from icestream.stack.compose import FILE, PARTS, ComposeBackend, compose_folder, find_compose
from icestream.stack.settings import Settings

SETTINGS = Settings(minio_license="a-licence", password="hush", trino_port=9998)


class Docker:
    """A program of that name: it keeps its calls, and answers as files say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "docker"
        self.path.write_text(
            f"#!/bin/sh\ncd {folder}\n"
            'echo "$MINIO_LICENSE $MINIO_ROOT_PASSWORD $TRINO_PORT | $*" >> calls\n'
            'case "$*" in *" ps "*) cat ps ;; *" logs"*) printf "one\\ntwo\\n" ;; esac\n'
            'case "$*" in *"$(cat fails)"*) echo "no such network" >&2; exit 17 ;; esac\n'
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.shows([])
        self.fails_at("nothing at all")

    def shows(self, containers: list[dict[str, object]]) -> None:
        (self._folder / "ps").write_text("".join(f"{json.dumps(one)}\n" for one in containers))

    def fails_at(self, words: str) -> None:
        (self._folder / "fails").write_text(words)

    def calls(self) -> list[str]:
        told = (self._folder / "calls").read_text().splitlines()
        (self._folder / "calls").unlink()
        return [line.partition(" | ")[2].partition(f"{FILE} ")[2] for line in told]

    def variables(self) -> set[str]:
        return {line.partition(" | ")[0] for line in (self._folder / "calls").read_text().splitlines()}


@pytest.fixture
def docker(tmp_path: Path) -> Docker:
    return Docker(tmp_path)


def backend(docker: Docker, tmp_path: Path, settings: Settings = SETTINGS) -> Backend:
    return ComposeBackend(settings, tmp_path, (str(docker.path), "compose"))


def running(name: str, **more: object) -> dict[str, object]:
    return {"Service": name, "State": "running", "Health": "healthy", **more}


def test_start_waits_for_all_parts_and_tells_their_addresses(docker: Docker, tmp_path: Path) -> None:
    said: list[str] = []
    found = backend(docker, tmp_path).start(said.append)
    assert docker.variables() == {"a-licence hush 9998"}
    assert docker.calls() == ["ps --all --format json", f"up --detach --wait {' '.join(PARTS)}"]
    assert said == ["starting 13 containers"]
    assert (found.bootstrap, found.worker, found.trino) == (
        "localhost:9092",
        "http://localhost:8083",
        "http://localhost:9998",
    )
    assert found.catalog == "http://localhost:9010/_iceberg"


def test_a_start_that_fails_stops_what_it_has_started_and_nothing_else(
    docker: Docker, tmp_path: Path
) -> None:
    docker.shows([running("kafka"), {"Service": "trino", "State": "exited"}])
    docker.fails_at("up --detach")
    with pytest.raises(IcestreamError, match="'docker compose up' failed"):
        backend(docker, tmp_path).start(lambda _: None)
    assert docker.calls()[-1] == f"stop {' '.join(part for part in PARTS if part != 'kafka')}"


def test_without_a_licence_nothing_is_started(docker: Docker, tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match="MINIO_LICENSE is empty"):
        backend(docker, tmp_path, Settings()).start(lambda _: None)
    assert backend(docker, tmp_path, Settings()).endpoints() is None
    assert docker.variables() == {"none minioadmin 9999"}


def test_status_shows_every_part_whether_it_runs_or_not(docker: Docker, tmp_path: Path) -> None:
    published = [
        {"PublishedPort": 9011},
        {"PublishedPort": 9010},
        {"PublishedPort": 9010},
        {"PublishedPort": 0},
    ]
    docker.shows(
        [
            running("nginx-dest", Publishers=published),
            {"Service": "kafka", "State": "running", "Health": "unhealthy"},
            {"Service": "trino", "State": "exited", "Health": ""},
            {"Service": "kafka-iceberg-init", "State": "exited"},
        ]
    )
    shown = {part.name: part for part in backend(docker, tmp_path).status()}
    assert list(shown) == list(PARTS)
    assert (shown["nginx-dest"].is_well, shown["nginx-dest"].address) == (True, "localhost:9010, 9011")
    assert not shown["kafka"].is_well
    assert (shown["trino"].state, shown["trino"].health) == ("stopped", "-")
    assert shown["minio-source1"].state == "stopped"


def test_a_list_as_older_versions_print_it_is_understood(docker: Docker, tmp_path: Path) -> None:
    (tmp_path / "ps").write_text(json.dumps([running("kafka")]))
    assert backend(docker, tmp_path).status()[0].is_well


def test_stop_keeps_data_and_clean_removes_it(docker: Docker, tmp_path: Path) -> None:
    stack = backend(docker, tmp_path)
    assert not stack.stop(lambda _: None)
    assert docker.calls() == ["ps --all --format json"]
    docker.shows([running("kafka")])
    assert stack.stop(lambda _: None)
    assert docker.calls()[-1] == "stop"
    stack.clean(lambda _: None)
    assert docker.calls() == ["down --volumes --remove-orphans"]


def test_the_steps_are_done_in_their_container(docker: Docker, tmp_path: Path) -> None:
    stack = ComposeBackend(SETTINGS, tmp_path, (str(docker.path), "compose"))
    stack.initialise(lambda _: None)
    assert docker.calls() == ["run --rm kafka-iceberg-init"]
    docker.fails_at("run --rm")
    with pytest.raises(IcestreamError, match="'docker compose run' failed"):
        stack.initialise(lambda _: None)


def test_what_docker_says_of_a_failure_is_told(docker: Docker, tmp_path: Path) -> None:
    docker.fails_at(" ps ")
    with pytest.raises(IcestreamError, match="'docker compose ps' failed \\(no such network\\)"):
        backend(docker, tmp_path).status()


def test_logs_of_a_part_or_of_all(docker: Docker, tmp_path: Path) -> None:
    lines: list[str] = []
    stack = backend(docker, tmp_path)
    stack.logs(None, False, lines.append)
    stack.logs("kafka", True, lines.append)
    assert lines == ["one", "two", "one", "two"]
    assert docker.calls() == ["logs", "logs --follow kafka"]
    with pytest.raises(PreconditionError, match="has no part 'kafak'"):
        stack.logs("kafak", False, lines.append)


def test_docker_is_found_where_its_engine_answers(docker: Docker, tmp_path: Path) -> None:
    path = {"PATH": f"{tmp_path}:{os.defpath}"}
    assert find_compose(path) == (str(docker.path), "compose")
    docker.fails_at("info")
    assert find_compose(path) is None
    assert find_compose({"PATH": str(tmp_path / "empty")}) is None


def test_the_files_are_those_of_the_repository_or_of_the_folder_that_is_named(tmp_path: Path) -> None:
    assert (compose_folder({}) / FILE).is_file()
    with pytest.raises(PreconditionError, match="point ICESTREAM_COMPOSE to its deploy/compose"):
        compose_folder({"ICESTREAM_COMPOSE": str(tmp_path)})
