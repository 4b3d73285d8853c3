"""`icestream image push`, as people run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.images import made
from tests.images.registries import running_registry


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "icestream.cli.main", "image", "push", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_an_archive_is_pushed_and_named_by_its_digest(tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", made.tar_of(made.docker_files()))
    with running_registry(tmp_path / "registry") as host:
        target = f"{host}/icestream/worker:1.0"
        done = run(str(archive), target, "--insecure", "--source", made.TAG)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{host}/icestream/worker@sha256:")
        again = run(str(archive), target, "--insecure")
        assert (again.stdout, again.stderr.count("is there")) == (done.stdout, 4)


def test_a_broken_archive_is_one_sentence(tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", b"no archive" * 100)
    done = run(str(archive), "registry.example.com/worker")
    assert done.returncode == 1
    assert "no tar file" in done.stderr
    assert "Traceback" not in done.stderr
