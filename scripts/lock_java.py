"""Write the lock files of Java artifacts anew from their [sets]. For developers, called by `make lock`.

Ivy, which comes inside of pyspark, finds out what the roots need. Downloads stay in ~/.cache/icestream/lock.
Files of Maven Central never change: size and hash of a file that the lock file has already are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

import pyspark

from icestream.embedded.home import home
from icestream.embedded.java import java
from icestream.java_artifacts import LOCK, Artifact, ArtifactSet, Coordinate, read_lock

MARK: Final = "# Written by `make lock`.\n"
LOCKS: Final = (LOCK, LOCK.parents[1] / "tests" / "java-artifacts.lock")
_SEPARATOR: Final = "!"
_NAMED: Final = _SEPARATOR.join(("[organisation]", "[artifact]", "[revision]", "([classifier])", ".[ext]"))


def main() -> None:
    for path in LOCKS:
        sets = read_lock(path).values()
        known = {str(one.coordinate): one for given in sets for one in given.artifacts}
        found = {given.name: list(_artifacts(given, known)) for given in sets}
        path.write_text(written(path.read_text(), found))


def written(before: str, found: Mapping[str, Sequence[Artifact]]) -> str:
    """The text of a lock file: its [sets] as they are, then these artifacts."""
    sets_of: dict[Artifact, list[str]] = {}
    for name, artifacts in found.items():
        for artifact in artifacts:
            sets_of.setdefault(artifact, []).append(name)
    lines = [
        f'"{artifact.coordinate}" = {{ size = {artifact.size}, sha256 = "{artifact.sha256}",'
        f" sets = {json.dumps(sorted(names))} }}\n"
        for artifact, names in sets_of.items()
    ]
    head, mark, _ = before.partition(MARK)
    return head + (mark or MARK) + "[artifacts]\n" + "".join(sorted(lines))


def _artifacts(wanted: ArtifactSet, known: Mapping[str, Artifact]) -> Iterable[Artifact]:
    if wanted.alone and all(str(root) in known for root in wanted.roots):
        yield from (known[str(root)] for root in wanted.roots)
        return
    print(f"resolving {wanted.name}", file=sys.stderr, flush=True)
    cache = home() / "lock"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".set-") as folder:
        for file in sorted(_run_ivy(wanted, cache, Path(folder))):
            group, artifact, version, classifier, ending = file.name.split(_SEPARATOR)
            coordinate = Coordinate(group, artifact, version, classifier, ending.removeprefix("."))
            yield known.get(str(coordinate)) or Artifact(coordinate, file.stat().st_size, _sha256(file))


def _run_ivy(wanted: ArtifactSet, cache: Path, folder: Path) -> list[Path]:
    described = cache / f"{wanted.name}.xml"
    described.write_text(ivy_file(wanted))
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    files = folder / "files"
    command = [
        java(),
        *_proxy_options(os.environ),
        # Keeps Ivy away from ~/.ivy2 and ~/.m2, where half a download of another program may lie.
        f"-Divy.default.ivy.user.dir={cache}",
        f"-Dmaven.repo.local={cache / 'm2'}",
        *("-jar", str(ivy), "-ivy", str(described), "-cache", str(cache / "cache")),
        *("-retrieve", str(files / _NAMED)),
    ]
    log = cache / f"{wanted.name}.log"
    with log.open("wb") as output:
        ran = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT)
    if ran.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit(f"make: Ivy could not resolve the set {wanted.name}; see {log}")
    return list(files.iterdir())


def ivy_file(wanted: ArtifactSet) -> str:
    """The Ivy module that depends on the roots of a set."""
    modules: dict[tuple[str, ...], list[Coordinate]] = {}
    for root in wanted.roots:
        modules.setdefault((root.group, root.artifact, root.version), []).append(root)
    return "\n".join(
        [
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            '  <info organisation="icestream" module="jars"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *(_dependency(module, roots, wanted.alone) for module, roots in modules.items()),
            "  </dependencies>",
            "</ivy-module>",
            "",
        ]
    )


def _dependency(module: tuple[str, ...], roots: Sequence[Coordinate], alone: bool) -> str:
    group, name, version = map(quoteattr, module)
    confs = '"default->master" transitive="false"' if alone else '"default->master,runtime"'
    head = f"    <dependency org={group} name={name} rev={version} conf={confs}"
    if not any(root.classifier or root.ending != "jar" for root in roots):
        return f"{head}/>"
    # Naming one file hides the others from Ivy, so the module's plain jar must be named as well.
    named = "".join(
        f"<artifact name={name} type={quoteattr(root.ending)} ext={quoteattr(root.ending)}"
        + (f" m:classifier={quoteattr(root.classifier)}/>" if root.classifier else "/>")
        for root in roots
    )
    return f"{head}>{named}</dependency>"


def _proxy_options(environ: Mapping[str, str]) -> list[str]:
    options = []
    for scheme in ("http", "https"):
        address = urlsplit(environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or "")
        if address.hostname and address.port:
            options += [f"-D{scheme}.proxyHost={address.hostname}", f"-D{scheme}.proxyPort={address.port}"]
    return options


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    main()
