"""Spark's Python daemon, with our imports done before it forks; see `spark.python.daemon.module`.

Every Python worker is a fork of this process. Importing here means that a worker starts at once, and that
all of them share the memory of the libraries.
"""

from __future__ import annotations

from pyspark.daemon import manager

from icestream.pipeline.worker import settle_process

if __name__ == "__main__":
    settle_process()
    manager()  # type: ignore[no-untyped-call]
