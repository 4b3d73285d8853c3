"""Find a Java that Spark and Kafka can run on. Called before the first JVM of a command starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError

OLDEST: Final = 17
_REMEDY: Final = f"install Java {OLDEST} or newer (Debian: apt-get install openjdk-17-jre-headless)"


def java(environ: Mapping[str, str] = os.environ) -> str:
    """The path of `java`: that of JAVA_HOME if it is set, as Spark does, else the one on the PATH."""
    java_home = environ.get("JAVA_HOME")
    if java_home:
        path = str(Path(java_home) / "bin" / "java")
        if not os.access(path, os.X_OK):
            raise PreconditionError(
                f"JAVA_HOME is {java_home}, which has no bin/java; {_REMEDY} or unset JAVA_HOME"
            )
    else:
        found = shutil.which("java", path=environ.get("PATH"))
        if not found:
            raise PreconditionError(f"no java on the PATH and JAVA_HOME is not set; {_REMEDY}")
        path = found
    version = java_version(path)
    if version is None or version < OLDEST:
        shown = "unknown" if version is None else version
        raise PreconditionError(f"{path} is Java {shown}; {_REMEDY} and point JAVA_HOME to it")
    return path


def java_version(path: str) -> int | None:
    """The major version that `java -version` prints, or None if it does not run."""
    try:
        ran = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return major_version(ran.stderr) if ran.returncode == 0 else None


def major_version(banner: str) -> int | None:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_402"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found.group(1)) if found else None
