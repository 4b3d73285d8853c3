"""What runs the parts of the stack: processes on this machine, or Docker Compose. `icestream stack` chooses.

A back end starts, stops and shows parts. It knows nothing of topics, tables and connectors: those are made by
`steps.py`, from the addresses that the back end tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Say = Callable[[str], None]
"""Where progress goes: one line a call, for a person."""


@dataclass(frozen=True)
class Endpoints:
    """Where the parts answer, as a program on this machine sees them (or one beside them in a container)."""

    bootstrap: str
    """Kafka, `host:port`."""
    worker: str
    """Our worker's REST API, as the other addresses without a slash at its end."""
    source: str
    destination: str
    catalog: str
    """The REST catalog: the destination's address and `/_iceberg`, where a load balancer is in front."""
    trino: str | None = None
    """None: the stack runs without Trino."""
    source_console: str | None = None
    destination_console: str | None = None


@dataclass(frozen=True)
class PartStatus:
    """One line of `icestream stack status`."""

    name: str
    """As the seed calls its container: `kafka`, `minio-source1`, `nginx-dest`, …"""
    state: str
    """`running`, `stopped`, or what the back end says of it."""
    health: str
    """`healthy`, `unhealthy` or `-` where nobody was asked."""
    address: str = "-"
    note: str = ""
    """What a person should know: a stand-in, a missing program and how to get it."""

    @property
    def is_well(self) -> bool:
        return self.state == "running" and self.health != "unhealthy"


class Backend(Protocol):
    """Every method may be called at any time, also after a start that was cut off half-way."""

    @property
    def name(self) -> str:
        """`processes` or `compose`."""

    def start(self, say: Say) -> Endpoints:
        """Start what does not run yet and wait until it answers. A failure leaves nothing running that
        this call has started."""

    def stop(self, say: Say) -> bool:
        """Stop all parts; their data stays. False if none ran."""

    def clean(self, say: Say) -> None:
        """Stop all parts and remove their data and logs."""

    def status(self) -> Sequence[PartStatus]:
        """Every part, in the order in which they start, whether it runs or not."""

    def endpoints(self) -> Endpoints | None:
        """Of the stack that runs; None if none does."""

    def logs(self, part: str | None, follow: bool, write: Say) -> None:
        """Write the lines of one part's log, or of all; with `follow`, go on until Ctrl-C."""
