"""The Java of the embedded parts. Called before the first JVM of a command starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from icestream.java_runtime import choose


def java(environ: Mapping[str, str] = os.environ) -> str:
    """The path of `java`."""
    return choose(environ).program
