"""Copies the jars that upserts into Iceberg tables need into a folder. Run by `build`, or in the image.

With them a worker needs no `spark.jars.packages`, which a container with a read-only root and no way to Maven
Central could not follow.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from icestream.embedded.jars import fetch_files

SETS = ["spark-iceberg", "spark-aws", "spark-postgresql"]


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for jar in fetch_files(SETS):
        shutil.copy2(jar, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
