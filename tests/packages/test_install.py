"""`scripts/install`: what the locks say is installed, whatever was released since, by uv or by pip."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from icestream.embedded.home import home
from tests.docs_commands import ROOT

LOCKS = ("requirements.txt", "requirements-all.txt", "requirements-dev.txt")
BUILD = "requirements-build.txt"

OLDEST_PIP = "23.0.1"
"""Debian 12's. It runs on Python 3.11 only; a newer Python brings a newer pip."""
NEWEST_PIP = "26.3"


@dataclass(frozen=True)
class Pinned:
    name: str
    version: str
    requires: tuple[str, ...] = ()

    @property
    def newer(self) -> Pinned:
        return Pinned(self.name, f"{self.version}.post1", self.requires)

    @property
    def wheel(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


def pinned_by(lock: str) -> Iterator[Pinned]:
    """The packages that a lock holds for this Python, with what they ask for."""
    for line in re.findall(r"^[a-z0-9][^\\\n]*", (ROOT / lock).read_text(), re.MULTILINE):
        requirement = Requirement(line.strip())
        if requirement.marker is None or requirement.marker.evaluate():
            installed = metadata.distribution(requirement.name)
            version = str(requirement.specifier).removeprefix("==")
            yield Pinned(requirement.name, version, tuple(installed.requires or ()))


def make_wheel(folder: Path, package: Pinned) -> str:
    """A wheel that asks for what the real one asks for and holds nothing else; returns its SHA-256."""
    info = package.wheel.removesuffix("-py3-none-any.whl") + ".dist-info"
    asks = "".join(f"Requires-Dist: {each}\n" for each in package.requires)
    extras = "".join(
        f"Provides-Extra: {each}\n" for each in set(re.findall(r"extra == ['\"]([^'\"]+)", asks))
    )
    path = folder / package.wheel
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n{extras}{asks}",
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Index:
    """A package index in a folder that has a newer release of each package, and a checkout that has our locks
    with the hashes of this index."""

    url: str
    checkout: Path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "scripts").mkdir()
    (checkout / "scripts" / "install").write_text((ROOT / "scripts" / "install").read_text())
    hashes: dict[Pinned, str] = {}
    for lock in (*LOCKS, BUILD):
        lines = []
        for package in pinned_by(lock):
            if package not in hashes:
                project = folder / package.name
                project.mkdir()
                hashes[package] = make_wheel(project, package)
                make_wheel(project, package.newer)
                links = "".join(
                    f'<a href="{each}">{each}</a>\n' for each in (package.wheel, package.newer.wheel)
                )
                (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
            lines.append(f"{package.name}=={package.version} --hash=sha256:{hashes[package]}\n")
        (checkout / lock).write_text("".join(lines))
    make_wheel(checkout, Pinned("icestream", "0.1.0"))
    return Index(folder.as_uri(), checkout)


def pip_of(version: str) -> Path:
    """A folder with this pip, which Python runs as it is."""
    folder = home() / "test-pip" / version
    if not folder.exists():
        target = folder.with_name(f"{version}-{os.getpid()}")
        command = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target))
        subprocess.run((*command, f"pip=={version}"), check=True, timeout=600)
        with contextlib.suppress(OSError):  # another process was first
            target.rename(folder)
        shutil.rmtree(target, ignore_errors=True)
    return folder / "pip"


def python_with(folder: Path, pip: str, uv: str, java: str = ":") -> Path:
    """A Python that runs these commands as its pip, its uv and its look for Java, and writes down what it was
    asked for."""
    python = folder / "python"
    python.write_text(
        f"""#!/bin/sh
module=$2
shift 2
echo "$module $*" >>"{folder}/calls"
case $module in
    uv) {uv} ;;
    pip) {pip} ;;
    icestream.java_runtime) {java} ;;
esac
"""
    )
    python.chmod(0o755)
    return python


def install(index: Index, lock: str, python: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    wheel = index.checkout / Pinned("icestream", "0.1.0").wheel
    command = ("sh", str(index.checkout / "scripts" / "install"), str(python), lock, str(wheel))
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(python.parent), **environ}
    return subprocess.run(
        command, cwd=index.checkout, env=variables, capture_output=True, text=True, timeout=600
    )


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.network
@pytest.mark.parametrize(
    ("version", "lock"),
    [
        (OLDEST_PIP, "requirements.txt"),
        (OLDEST_PIP, "requirements-dev.txt"),
        (NEWEST_PIP, "requirements.txt"),
        (NEWEST_PIP, "requirements-dev.txt"),
    ],
)
def test_pip_installs_the_lock_whatever_was_released_since(
    version: str, lock: str, index: Index, tmp_path: Path
) -> None:
    if version == OLDEST_PIP and sys.version_info >= (3, 12):
        pytest.skip(f"pip {OLDEST_PIP} does not run on Python 3.12 and newer")
    pip = f'"{sys.executable}" "{pip_of(version)}" "$@"'
    dry = f'case "$*" in *" check") ;; *" install "*) {pip} --dry-run --ignore-installed ;; *) {pip} ;; esac'
    ran = install(index, lock, python_with(tmp_path, dry, uv="exit 1"), PIP_INDEX_URL=index.url)
    assert ran.returncode == 0, ran.stderr[-3000:]
    (installed,) = re.findall(r"^Would install (.*)$", ran.stdout, re.MULTILINE)
    expected = {f"{normalized(each.name)} {each.version}" for each in pinned_by(lock)}
    found = (each.rpartition("-") for each in installed.split())
    assert {f"{normalized(name)} {version}" for name, _, version in found} == expected


@pytest.mark.parametrize("lock", LOCKS)
def test_uv_installs_the_lock_whatever_was_released_since(lock: str, index: Index, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    uv = f'shift 4; exec "{sys.executable}" -m uv pip install --dry-run --target "{tmp_path}/empty" "$@" 2>&1'
    ran = install(index, lock, python_with(tmp_path, ":", uv), UV_DEFAULT_INDEX=index.url)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = re.findall(r"^ \+ (\S+)==(\S+)$", ran.stdout, re.MULTILINE)
    assert {(normalized(name), version) for name, version in found} == {
        (normalized(each.name), each.version) for each in pinned_by(lock)
    }, ran.stdout


def test_all_locks_pin_the_versions_of_the_tests() -> None:
    tested = set(pinned_by("requirements-dev.txt"))
    for lock in ("requirements.txt", "requirements-all.txt"):
        assert set(pinned_by(lock)) - tested == set(), (
            f"{lock} differs from requirements-dev.txt; run: make lock"
        )


@pytest.mark.parametrize(
    ("settings", "environ", "uses_uv"),
    [
        ("", {}, True),
        ("global.cert='/a.pem'", {"SSL_CERT_FILE": "/a.pem"}, True),
        (":env:.find-links='/wheels'\nglobal.timeout='60'", {}, True),
        ("global.cert='/a.pem'", {}, False),
        ("global.index-url='https://u:s3cret@packages.example/simple'", {}, False),
        ("install.extra-index-url='https://u:s3cret@packages.example/simple'", {}, False),
        (":env:.no-index='1'", {}, False),
        ("user.proxy='http://u:s3cret@127.0.0.1:3128'", {}, False),
        ("site.trusted-host='packages.example'", {}, False),
    ],
)
def test_uv_is_used_unless_pip_has_settings_that_uv_does_not_know(
    settings: str, environ: dict[str, str], uses_uv: bool, index: Index, tmp_path: Path
) -> None:
    pip = f"""case "$*" in *"config list") printf '%s\\n' "{settings}" ;; esac"""
    ran = install(index, "requirements.txt", python_with(tmp_path, pip, uv=":"), **environ)
    assert ran.returncode == 0
    calls = (tmp_path / "calls").read_text()
    assert ("uv pip install" in calls) == uses_uv
    assert ("install --no-deps --require-hashes --no-build-isolation" in calls) != uses_uv
    assert "s3cret" not in ran.stdout + ran.stderr


def test_java_comes_from_pypi_only_where_there_is_none(index: Index, tmp_path: Path) -> None:
    python = python_with(tmp_path, pip=":", uv=":")
    assert install(index, "requirements.txt", python).returncode == 0
    assert "requirements-java.txt" not in (tmp_path / "calls").read_text()
    python = python_with(tmp_path, pip=":", uv=":", java='echo "no Java found"; exit 1')
    ran = install(index, "requirements.txt", python)
    assert ran.returncode == 0 and "no Java found" in ran.stdout
    last = (tmp_path / "calls").read_text().splitlines()[-1]
    assert last.startswith("uv pip install") and last.endswith("/requirements-java.txt")


def test_what_cannot_be_installed_is_one_sentence(index: Index, tmp_path: Path) -> None:
    fails = python_with(tmp_path, pip='case "$*" in *requirements.txt) exit 1 ;; esac', uv="exit 2")
    ran = install(index, "requirements.txt", fails)
    assert ran.returncode == 1
    assert ran.stderr == (
        "make: the packages of requirements.txt could not be installed; "
        "see the lines above, then run make again\n"
    )
    ran = install(index, "requirements.txt", python_with(tmp_path, pip="exit 1", uv="exit 1"))
    assert "has no pip; remove the folder of this virtual environment and run make again" in ran.stderr


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("(3, 10, 4)", "is Python 3.10, and Icestream runs on 3.11 to 3.14"),
        ("(3, 11, 0)", ""),
        ("(3, 14, 9)", ""),
        ("(3, 15, 0)", "is Python 3.15, and Icestream runs on 3.11 to 3.14"),
    ],
)
def test_a_python_that_is_too_old_or_too_new_is_refused(version: str, said: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    # The given code, with that version in place of its own.
    python.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c \"import sys; sys.version_info = {version}; $2\"\n"
    )
    python.chmod(0o755)
    command = ("sh", str(ROOT / "scripts" / "check-machine"), str(python))
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == (1 if said else 0), ran.stderr
    assert said in ran.stderr and ("make PYTHON=" in ran.stderr) == bool(said)
