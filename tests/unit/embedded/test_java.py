"""Which Java is taken, and the sentences when there is none that fits."""

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded.java import java, major_version


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_402"', 8),
        ("command not found", None),
    ],
)
def test_the_major_version_is_read_from_the_banner(banner: str, version: int | None) -> None:
    assert major_version(banner) == version


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    assert java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}) == str(program)
    assert java({"PATH": str(other.parent)}) == str(other)


def test_an_old_java_is_named_with_its_version(tmp_path: Path) -> None:
    program = fake_java(tmp_path, "11.0.2")
    with pytest.raises(PreconditionError, match=rf"{program} is Java 11; install Java 17 or newer"):
        java({"JAVA_HOME": str(tmp_path)})


def test_no_java_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        PreconditionError, match="no java on the PATH and JAVA_HOME is not set; install Java 17"
    ):
        java({"PATH": str(tmp_path)})
    with pytest.raises(PreconditionError, match="which has no bin/java"):
        java({"JAVA_HOME": str(tmp_path), "PATH": ""})
