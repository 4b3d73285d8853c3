"""Wheel and sdist of this tree, and an environment that has nothing but the wheel and what it asks for."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from icestream.embedded.home import home
from tests.docs_commands import ROOT


@dataclass(frozen=True)
class Dist:
    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Installed:
    """A virtual environment, and variables for its commands with which nothing of this tree is found."""

    prefix: Path
    environ: dict[str, str]

    def command(self, name: str) -> str:
        return str(self.prefix / "bin" / name)


def _run(*command: str, cwd: Path, environ: dict[str, str] | None = None) -> None:
    ran = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=800)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Dist:
    """As `make dist` builds them: the sdist from the tree, the wheel from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), cwd=ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Dist(wheel, sdist)


@pytest.fixture(scope="session")
def installed(dist: Dist, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The pinned requirements are a gigabyte: they are installed once for each requirements.txt, the wheel at
    every run. The lock keeps another run from exchanging the wheel meanwhile."""
    requirements = ROOT / "requirements.txt"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(requirements.read_bytes() + version.encode()).hexdigest()[:16]
    folder = home() / "test-wheel"
    folder.mkdir(parents=True, exist_ok=True)
    prefix, ready = folder / key, folder / f"{key}.ready"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environ = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        install = (str(ROOT / "scripts" / "install"), str(prefix / "bin" / "python"), str(requirements))
        if not ready.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(prefix), cwd=elsewhere, environ=environ)
        _run(*install, str(dist.wheel), cwd=elsewhere, environ=environ)
        ready.touch()
        environ["PATH"] = f"{prefix / 'bin'}:{environ['PATH']}"
        yield Installed(prefix, environ)
