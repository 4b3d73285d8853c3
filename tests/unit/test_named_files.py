"""Files that a config names: a device or a pipe among them stopped the worker, or filled its memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.kafka.connection import connection_facts
from icestream.named_files import content

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["device", "pipe", "folder", "large", "nul"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    paths: dict[str, Callable[[], str]] = {
        "device": lambda: "/dev/zero",
        "pipe": lambda: _pipe(tmp_path / "pipe"),
        "folder": lambda: str(tmp_path),
        "large": lambda: _large(tmp_path / "large"),
        "nul": lambda: "a\0b",
    }
    return paths[request.param]()


def _pipe(path: Path) -> str:
    os.mkfifo(path)
    assert stat.S_ISFIFO(path.stat().st_mode)
    return str(path)


def _large(path: Path) -> str:
    with path.open("wb") as sparse:
        sparse.truncate(2**33)
    return str(path)


def test_only_small_regular_files_are_read(file: str, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        content(Path(file))
    (tmp_path / "small").write_bytes(b"x")
    assert content(tmp_path / "small") == b"x"


@pytest.mark.parametrize("key", ["ssl.truststore.location", "ssl.keystore.location", "ssl.key.location"])
def test_no_store_of_a_connector_is_a_device(file: str, key: str) -> None:
    """`validate` opens it: one request with /dev/zero had the kernel kill the worker."""
    settings = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SSL",
        key: file,
        "ssl.keystore.password": "x",
    }
    if key == "ssl.key.location" and Path(file).is_dir():
        # Left to librdkafka, which takes folders for some keys, and reads a folder as no device.
        assert connection_facts(settings)
        return
    with pytest.raises(ConfigError, match="cannot be read"):
        connection_facts(settings)
