"""Spark's Python daemon imports nothing from a zip: every task would read the zip again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark

import icestream

_LIBRARY = Path(pyspark.__path__[0]) / "python" / "lib"
_JARS = Path(pyspark.__path__[0]) / "jars"
_REPORT = """
import json, sys
import icestream.pipeline.daemon
from icestream.pipeline.task import run_tasks
zips = sys.argv[1:]
print(json.dumps([
    [path for path in sys.path if path in zips],
    [path for path in sys.path_importer_cache if path.startswith(tuple(zips))],
    [name for name, one in sys.modules.items() if str(getattr(one, "__file__", "")).startswith(tuple(zips))],
]))
"""


def _seen(zips: list[Path]) -> list[list[str]]:
    """What a daemon has of these zips, which Spark puts first on its path."""
    home = str(Path(icestream.__path__[0]).parent)
    path = os.pathsep.join([*map(str, zips), home])
    answer = subprocess.run(
        [sys.executable, "-c", _REPORT, *map(str, zips)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = json.loads(answer.stdout)
    return found


def test_the_daemon_knows_no_zip_of_spark() -> None:
    zips = [*sorted(_LIBRARY.glob("*.zip")), *_JARS.glob("spark-core_*.jar")]
    assert len(zips) == 3
    assert _seen(zips) == [[], [], []]


def test_a_zip_of_another_version_stays(tmp_path: Path) -> None:
    """A cluster may have another pyspark installed than the one that Spark itself is."""

    other = tmp_path / "pyspark.zip"
    shutil.copy(_LIBRARY / "pyspark.zip", other)
    with zipfile.ZipFile(other) as content:
        parts = {name: content.read(name) for name in content.namelist()}
    parts["pyspark/version.py"] += b"# another\n"
    with zipfile.ZipFile(other, "w") as content:
        for name, body in parts.items():
            content.writestr(name, body)
    on_path, cached, modules = _seen([other])
    assert on_path == [str(other)]
    assert cached
    assert "pyspark" in modules
