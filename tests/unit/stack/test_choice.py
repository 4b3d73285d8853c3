"""Compose where Docker is and can start all of it, processes elsewhere, or what is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from icestream.api.errors import PreconditionError
from icestream.cli.stack import stack
from icestream.stack.choice import compose_backend
from icestream.stack.settings import Settings

LICENSED = Settings(minio_license="x")


def there() -> tuple[str, ...]:
    return ("docker", "compose")


def absent() -> None:
    return None


def test_by_itself_it_is_compose_only_where_everything_for_it_is_there(tmp_path: Path) -> None:
    assert compose_backend(LICENSED, {}, there) is not None
    assert compose_backend(LICENSED, {}, absent) is None
    assert compose_backend(Settings(), {}, there) is None
    assert compose_backend(LICENSED, {"ICESTREAM_COMPOSE": str(tmp_path)}, there) is None


def test_what_is_asked_for_is_taken() -> None:
    assert compose_backend(LICENSED, {"ICESTREAM_STACK": "processes"}, there) is None
    found = compose_backend(Settings(), {"ICESTREAM_STACK": "compose"}, there)
    assert found is not None
    assert found.name == "compose"


def test_what_cannot_be_is_one_sentence() -> None:
    with pytest.raises(PreconditionError, match="no Docker with Compose answers"):
        compose_backend(LICENSED, {"ICESTREAM_STACK": "compose"}, absent)
    with pytest.raises(PreconditionError, match="ICESTREAM_STACK is 'podman'"):
        compose_backend(LICENSED, {"ICESTREAM_STACK": "podman"}, there)


def test_the_command_steers_containers_where_compose_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\n')
    docker.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ICESTREAM_STACK", "compose")
    ran = CliRunner().invoke(stack, ["stop"])
    assert (ran.exit_code, ran.output) == (0, "the stack does not run\n")
    assert (
        (tmp_path / "calls")
        .read_text()
        .splitlines()[-1]
        .endswith("docker-compose.yaml ps --all --format json")
    )
