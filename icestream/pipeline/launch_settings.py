"""Settings for a Spark JVM that starts, in a file that only its owner reads. Used by `session.py`.

PySpark would put them into the arguments of `spark-submit`, where every user of the machine sees passwords.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_ESCAPES: Final[Mapping[str, str]] = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@contextmanager
def launched_with(settings: Mapping[str, str]) -> Iterator[None]:
    """A JVM that PySpark starts in this block has these settings; the file is gone afterwards."""
    before = os.environ.get(_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="icestream-spark-") as folder:
        file = Path(folder) / "spark.properties"
        file.touch(mode=0o600)
        file.write_text(
            "".join(f"{_key(key)}={''.join(map(_escaped, value))}\n" for key, value in settings.items())
        )
        own = f"--load-spark-defaults --properties-file '{file}'"
        os.environ[_ARGUMENTS] = f"{own} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = before


def _key(key: str) -> str:
    return "".join(f"\\{char}" if char in " =:#!" else _escaped(char) for char in key)


def _escaped(char: str) -> str:
    """As Java reads it from a properties file, whatever its character set."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
