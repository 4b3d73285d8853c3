"""Java libraries that only tests and benchmarks use, by the sets of their lock file."""

from pathlib import Path
from typing import Final

from icestream.embedded import jars

LOCK: Final = Path(__file__).with_name("java-artifacts.lock")


def fetch(name: str) -> Path:
    """A folder with all files of a set."""
    return jars.fetch(name, LOCK)
