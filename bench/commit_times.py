"""What the benchmarks of commits share: the job's catalog on SQLite, medians, and the file of results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from icestream.api.checkpoint import TopicIds

TOPIC: Final = TopicIds("5L6g3nShT-eMCtK--X86sw", {"topic": "V8qKJ6LmR2CzDVnkSyYw4Q"})
"""As long as real ones: they are in every checkpoint."""


def catalog_keys(folder: Path) -> dict[str, str]:
    return {
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }


def median_ms(seconds: Sequence[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)


def save(found: Sequence[Any], file: Path) -> None:
    """Dataclasses that have a `ratio`."""
    body = [{**asdict(one), "ratio": round(one.ratio, 2)} for one in found]
    file.write_text(json.dumps(body, indent=2) + "\n")
