"""The image, built once for a run, as docs/deploy/image.md shows it; an unchanged tree is not built again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image import container
from tests.kit.programs import PATH
from tests.kubernetes.conftest import api_server, namespace  # noqa: F401  # fixtures, for Spark's executors

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def archive() -> Path:
    container.require()
    built = subprocess.run(
        [TOP / "deploy" / "image" / "build"],
        env={**os.environ, "PYTHON": sys.executable, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def image(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[container.Image]:
    folder = tmp_path_factory.mktemp("image")
    yield container.unpacked(archive, folder)
    shutil.rmtree(folder)
