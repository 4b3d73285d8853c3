"""`connect-standalone` and `connect-distributed`: the start commands of Kafka Connect, so that scripts and
images that call them start our workers."""

from __future__ import annotations

import sys

from icestream.cli.main import run


def standalone() -> None:
    """`connect-standalone WORKER.properties [CONNECTOR.properties …]`."""
    sys.exit(run(["standalone", *sys.argv[1:]]))


def distributed() -> None:
    """`connect-distributed WORKER.properties`."""
    sys.exit(run(["distributed", *sys.argv[1:]]))
