"""Copies the jars that upserts into Iceberg tables need into a folder. Run by `build`, or in the image.

With them a worker needs no `spark.jars.packages`, which a container with a read-only root and no way to Maven
Central could not follow.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from icestream.embedded.jars import fetch_all

VERSION = "1.12.0"
COORDINATES = [
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{VERSION}",
    f"org.apache.iceberg:iceberg-aws-bundle:{VERSION}",
    "org.postgresql:postgresql:42.7.8",
]


def main(target: Path) -> None:
    wanted = {coordinate.split(":")[1] for coordinate in COORDINATES}
    target.mkdir(parents=True, exist_ok=True)
    for jar in fetch_all(f"image-{VERSION}", COORDINATES).glob("*.jar"):
        # What they need in turn is inside of them, or among Spark's own jars.
        if any(jar.name.startswith(f"{module}-") for module in wanted):
            shutil.copy2(jar, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
