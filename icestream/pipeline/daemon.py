"""Spark's Python daemon, with our imports done before it forks; see `spark.python.daemon.module`.

Every Python worker is a fork of this process. Importing here means that a worker starts at once, and that
all of them share the memory of the libraries.
"""

from __future__ import annotations

from icestream.pipeline.zips import forget_zips

# Before the first import of pyspark: what is imported from a zip is looked for in that zip at every task.
forget_zips()

from pyspark.daemon import manager  # noqa: E402

from icestream.pipeline.task import settle_process  # noqa: E402

if __name__ == "__main__":
    settle_process()
    manager()  # type: ignore[no-untyped-call]
