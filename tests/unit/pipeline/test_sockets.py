"""How Spark and its Python workers talk: over sockets that nobody else reaches."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from icestream.pipeline import sockets
from icestream.pipeline.sockets import socket_settings

_ENABLED, _FOLDER = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"


def test_the_folder_is_its_owners_alone_and_stays_the_same() -> None:
    settings = socket_settings({})
    assert settings[_ENABLED] == "true"
    assert stat.S_IMODE(Path(settings[_FOLDER]).stat().st_mode) == 0o700
    assert socket_settings({}) == settings


@pytest.mark.parametrize("given", [{_ENABLED: "false"}, {_FOLDER: "/run/spark"}])
def test_what_a_worker_config_says_counts(given: dict[str, str]) -> None:
    assert socket_settings(given) == {}


def test_a_path_that_is_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_own_folder", lambda: "/tmp/" + "x" * 80)
    assert socket_settings({}) == {}
