"""The Spark session of a worker, from its `spark.*` settings: opened, asked whether it lives, let go of.
One per process."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from icestream.deadlines import Overdue, within
from icestream.java_properties import properties_text
from icestream.java_runtime import java_of_spark
from icestream.pipeline.kubernetes import as_spark_writes, driver_settings

_DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "icestream",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": f"file://{Path(__file__).parent / 'fair-scheduler.xml'}",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "icestream.pipeline.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.log.level": "ERROR",
}
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")
_LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": (
        # The JVM only hands out tasks: compiling that a second time took more than it saved. Without memory a
        # JVM answers late or never; one that ends is started again.
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError"
    ),
}
_JARS: Final = frozenset({"spark.jars", "spark.jars.packages"})
_QUERYING: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError"
}
QUERY_JVM: Mapping[str, str] = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
"""For a session that runs queries in its JVM."""
_MALLOC: Mapping[str, int] = {
    # Huge pages where the system lets a program ask for them (`madvise`).
    "hugetlb": 1,
    "arena_max": 1,
    "mmap_threshold": 2**30,
    "trim_threshold": 512 * 2**20,
    "top_pad": 64 * 2**20,
}
"""For Python workers: each chunk gives back the memory that the next one needs. Without these, the system
takes it away and clears it again, which was a tenth of a task's CPU (docs/decisions/024-speed.md)."""
_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_SOCKET_FOLDER: Final = "spark.python.unix.domain.socket.dir"
_LONGEST_FOLDER: Final = 60
"""The path of a socket has about 100 characters, of which Spark's names take 42."""
_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"


def spark_settings(worker: Mapping[str, str]) -> dict[str, str]:
    """The `spark.*` keys of a worker config over our defaults."""
    given = {as_spark_writes(key): value for key, value in worker.items() if key.startswith("spark.")}
    if "spark.remote" in given:
        return given
    settings = {**_DEFAULTS, **_environment_of_python(), **driver_settings(given, os.environ), **given}
    if settings["spark.master"].startswith("local"):
        # Whoever brings jars has queries run here, such as upserts: these are worth compiling well.
        of_queries = _QUERYING if _JARS & given.keys() else {}
        settings = {**_LOCAL_DEFAULTS, **of_queries, **settings}
    return settings


def _environment_of_python() -> dict[str, str]:
    """Variables of Python workers. With glibc they say how memory is kept: Arrow's own allocator has fewer
    settings."""
    if sys.platform == "darwin":
        # Spark forks its Python workers, and macOS may end a fork that calls Objective-C.
        return {"spark.executorEnv.OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}
    if platform.libc_ver()[0] != "glibc":
        return {}
    tunables = ":".join(f"glibc.malloc.{name}={value}" for name, value in _MALLOC.items())
    found = {"GLIBC_TUNABLES": tunables, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return {f"spark.executorEnv.{name}": value for name, value in found.items() if name not in os.environ}


def open_session(worker: Mapping[str, str]) -> SparkSession:
    settings = dict(spark_settings(worker))
    if is_local(worker):
        settings |= socket_settings(settings)
    # Python workers must be this very Python: they unpickle our code. On a cluster it may lie elsewhere.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.Builder()
    remote = settings.pop("spark.remote", None)
    if remote:
        builder = builder.remote(remote)
    elif SparkContext._gateway is None:
        # There is no JVM yet: what the builder knows would stand in the arguments of the one that starts.
        with java_of_spark(), launched_with(settings):
            return builder.getOrCreate()
    for key, value in settings.items():
        builder = builder.config(key, value)
    # `create`, which only a remote session has: what another thread used before may be of a server that died.
    return builder.create() if remote and not remote.startswith("local") else builder.getOrCreate()


@contextmanager
def launched_with(settings: Mapping[str, str]) -> Iterator[None]:
    """A JVM that PySpark starts in this block has these settings, by a file that only its owner reads and
    that is gone afterwards. PySpark would put them into the arguments of `spark-submit`, where every user of
    the machine sees passwords."""
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="icestream-spark-") as folder:
        file = Path(folder) / "spark.properties"
        file.touch(mode=0o600)
        file.write_text(properties_text(settings))
        own = f"--load-spark-defaults --properties-file '{file}'"
        os.environ[_SUBMIT_ARGUMENTS] = f"{own} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SUBMIT_ARGUMENTS]
            else:
                os.environ[_SUBMIT_ARGUMENTS] = before


def socket_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Unix sockets between Spark on this machine and its Python workers; empty where somebody has chosen, or
    where it cannot be done.

    Over TCP a small task waits 40 ms for its input, as if an acknowledgement were delayed.
    docs/decisions/015-one-record.md has the figures.
    """
    if _SOCKETS in given or _SOCKET_FOLDER in given or not hasattr(socket, "AF_UNIX"):
        return {}
    folder = _own_folder()
    return {_SOCKETS: "true", _SOCKET_FOLDER: folder} if len(folder) <= _LONGEST_FOLDER else {}


@functools.cache
def _own_folder() -> str:
    """Of this process, for its life. These sockets ask for no password: whoever reaches them runs code."""
    folder = tempfile.mkdtemp(prefix="icestream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def answers(session: SparkSession, seconds: float) -> bool:
    """Whether Spark answers in time: the JVM of a session here, the server of a remote one."""
    try:
        # A question that PySpark keeps no answer to, as it does with the version.
        within(seconds, lambda: session.conf.get("spark.app.name", ""), "spark-answers")
    except Overdue:
        return False
    except Exception:  # whatever the client raises: py4j's errors, OSError, gRPC's
        return False
    return True


def words_of(error: Exception) -> str:
    """What an error says. Java's errors are asked for it in their JVM, which may have ended."""
    try:
        return str(error) or repr(error)
    except Exception:  # py4j's, or the socket's
        return f"{type(error).__name__}, of a JVM that does not answer any more"


def let_go(session: SparkSession) -> None:
    """Forget a session whose JVM or server is gone, so that `open_session` makes a new one.

    PySpark keeps the gateway to its JVM for the life of the process, and `getOrCreate` has no way around it:
    `SparkContext._gateway` and `_jvm` are all that we touch of its inside, in this module and nowhere
    else but in `engine_numbers`, which reads numbers of the JVM.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        # A remote session: a new one does not depend on it, and its farewell could wait for the server.
        return
    if getattr(gateway, "proc", None) is not None:
        # One that lives and does not answer would keep memory, ports and our batches.
        gateway.proc.kill()
        gateway.proc.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        # The first time it may fail at the JVM, before it has cleaned up on this side.
        for _ in range(2):
            with contextlib.suppress(Exception):
                session.stop()
    SparkContext._gateway = None
    SparkContext._jvm = None
    with contextlib.suppress(Exception):
        gateway.shutdown()


def lacks_own_process(worker: Mapping[str, str]) -> bool:
    """While there is no session: whether the JVM is missing that only this worker has. A server of Spark
    Connect is not ours; nor is the master of a cluster, if a JVM has started and got no further."""
    has_server = "spark.remote" in spark_settings(worker)
    return not has_server and (is_local(worker) or SparkContext._gateway is None)


def is_local(worker: Mapping[str, str]) -> bool:
    """Whether tasks run on this machine, beside the driver."""
    settings = spark_settings(worker)
    return "spark.remote" not in settings and _LOCAL.fullmatch(settings.get("spark.master", "")) is not None


def slots(worker: Mapping[str, str], tasks_max: int) -> int:
    """How many tasks of one batch should run at once: never more than `tasks.max`, nor than a local master
    runs."""
    local = _LOCAL.fullmatch(spark_settings(worker).get("spark.master", ""))
    if not local:
        return tasks_max
    threads = local.group(1)
    cores = 1 if threads is None else (os.cpu_count() or 1) if threads == "*" else int(threads)
    return max(1, min(tasks_max, cores))
