"""Java libraries by their Maven coordinates, fetched with the Ivy that comes inside pyspark.

The embedded broker, `icestream sql`, the tests and the benchmark take their jars from here.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from icestream.api.errors import PreconditionError
from icestream.embedded.home import home
from icestream.embedded.java import java

_ATTEMPTS: Final = 2
_TIMEOUT_S: Final = 900


def fetch(group: str, module: str, version: str, *, extra: Sequence[str] = ()) -> Path:
    """A folder with the jar of one module, of `extra` coordinates, and all that they need at run time."""
    return fetch_all(f"{module}-{version}", [f"{group}:{module}:{version}", *extra])


def fetch_all(name: str, coordinates: Sequence[str]) -> Path:
    """A folder with the jars of `group:module:version[:classifier]` coordinates and what they need."""
    return _fetched(name, ivy_file_for(coordinates), coordinates)


def _fetched(name: str, ivy_file: str, coordinates: Sequence[str]) -> Path:
    digest = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:8]
    jars = home() / "jars"
    folder = jars / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    jars.mkdir(exist_ok=True)
    # One download at a time for the whole home folder: Ivy's cache is shared and has no lock of its own.
    with _locked(jars / ".lock"):
        if not folder.is_dir():
            _download(folder, ivy_file, coordinates)
    return folder


def fetch_archive(group: str, module: str, version: str, classifier: str, ending: str) -> Path:
    """A folder with one file of a module, say the `tar.gz` of a whole distribution, and nothing it needs."""
    named = f"name={quoteattr(module)} type={quoteattr(ending)} ext={quoteattr(ending)}"
    ivy_file = _ivy_module(
        [
            f"    <dependency org={quoteattr(group)} name={quoteattr(module)} rev={quoteattr(version)}"
            f' conf="default->master" transitive="false"><artifact {named}'
            f" m:classifier={quoteattr(classifier)}/></dependency>"
        ]
    )
    return _fetched(f"{module}-{version}", ivy_file, [f"{group}:{module}:{version}:{classifier}@{ending}"])


def _download(folder: Path, ivy_file: str, coordinates: Sequence[str]) -> None:
    # On stderr, whoever calls: the first run would look stuck for half a minute.
    print(f"fetching {coordinates[0]} and what it needs (once)", file=sys.stderr, flush=True)
    log = folder.parent / f"{folder.name}.log"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as scratch:
        described = Path(scratch) / "ivy.xml"
        described.write_text(ivy_file)
        libs = Path(scratch) / "libs"
        for _ in range(_ATTEMPTS):
            if _run_ivy(described, libs, log):
                libs.rename(folder)
                log.unlink(missing_ok=True)
                return
            shutil.rmtree(libs, ignore_errors=True)
    raise PreconditionError(
        f"cannot download {', '.join(coordinates)} from Maven Central;"
        f" check the network and the coordinates, then try again (details in {log})"
    )


def _run_ivy(described: Path, libs: Path, log: Path) -> bool:
    cache = home() / "ivy"
    command = [
        java(),
        *proxy_options(os.environ),
        # Keeps Ivy away from ~/.ivy2 and ~/.m2, where half a download of somebody else may lie.
        f"-Divy.default.ivy.user.dir={cache}",
        f"-Dmaven.repo.local={cache / 'm2'}",
        *("-jar", str(_ivy_jar())),
        *("-ivy", str(described)),
        *("-cache", str(cache / "cache")),
        *("-retrieve", str(libs / "[artifact]-[revision](-[classifier]).[ext]")),
    ]
    with log.open("wb") as output:
        try:
            ran = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
    return ran.returncode == 0 and any(libs.glob("*.*"))


def ivy_file_for(coordinates: Sequence[str]) -> str:
    """The Ivy module that depends on the coordinates: the jars themselves and what they need at run time."""
    modules: dict[tuple[str, ...], list[str]] = {}
    for coordinate in coordinates:
        module, classifier = _module_and_classifier(coordinate)
        modules.setdefault(module, []).append(classifier)
    return _ivy_module([_dependency(module, classifiers) for module, classifiers in modules.items()])


def _ivy_module(dependencies: Sequence[str]) -> str:
    return "\n".join(
        [
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            '  <info organisation="icestream" module="jars"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *dependencies,
            "  </dependencies>",
            "</ivy-module>",
            "",
        ]
    )


def _module_and_classifier(coordinate: str) -> tuple[tuple[str, ...], str]:
    parts = coordinate.split(":")
    if len(parts) not in (3, 4) or not all(parts):
        raise ValueError(f"'{coordinate}' is not of the form group:module:version[:classifier]")
    return tuple(parts[:3]), "".join(parts[3:])


def _dependency(module: tuple[str, ...], classifiers: Sequence[str]) -> str:
    org, name, rev = map(quoteattr, module)
    head = f'    <dependency org={org} name={name} rev={rev} conf="default->master,runtime"'
    if not any(classifiers):
        return f"{head}/>"
    # Naming one jar hides the others from Ivy, so the module's plain jar must be named as well.
    named = (f" m:classifier={quoteattr(classifier)}" if classifier else "" for classifier in classifiers)
    jars = "".join(f'<artifact name={name} type="jar" ext="jar"{classifier}/>' for classifier in named)
    return f"{head}>{jars}</dependency>"


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Java's options for the proxy that pip and curl take from the environment; Java does not look there."""
    options = []
    for scheme in ("http", "https"):
        address = urlsplit(environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or "")
        if address.hostname and address.port:
            options += [f"-D{scheme}.proxyHost={address.hostname}", f"-D{scheme}.proxyPort={address.port}"]
    return options


def _ivy_jar() -> Path:
    # Found without an import: importing pyspark takes longer than the rest of this module.
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise PreconditionError("pyspark with its Ivy jar is not installed; run `make setup`")
    return found[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
