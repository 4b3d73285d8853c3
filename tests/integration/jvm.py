"""A JVM whose classes tests call through py4j, to compare ours with them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

# Its plugin imports it at the end of a run: too late for Python's parser, which py4j's objects confuse when
# they go (cpython issue 106905).
import hypothesis  # noqa: F401
import py4j.java_gateway
import py4j.protocol
from py4j.java_gateway import GatewayParameters, JavaGateway

from icestream.embedded.java import java


@contextmanager
def java_gateway(*class_path: str, heap: str = "64m", options: Sequence[str] = ()) -> Iterator[JavaGateway]:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    jar = next((Path(spec.origin).parent / "jars").glob("py4j-*.jar"))
    path = ":".join([str(jar), *class_path])
    # Quick to start; and exceptions keep their messages, however often the same line throws one.
    quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-OmitStackTraceInFastThrow"]
    gateway = ["py4j.GatewayServer", "--die-on-broken-pipe", "0"]
    command = [java(), f"-Xmx{heap}", *quick, *options, "-cp", path, *gateway]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    opened = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    # A Spark session of an earlier test makes py4j ask its own JVM about every exception.
    with patch.object(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value):
        yield opened
    opened.close()
    # Its standard input is its life line.
    process.communicate(timeout=60)
