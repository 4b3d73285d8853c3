"""What a source connector offers, besides what every connector does: slices with fixed ends.

Sources know nothing of Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import pyarrow as pa

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin
from icestream.api.offset_admin import OffsetEntry


@dataclass(frozen=True)
class SourceSlice:
    """Some records of a source, as a column of values, and where the source stands after them."""

    topic: str
    values: pa.Array
    after: OffsetEntry

    def __len__(self) -> int:
        return len(self.values)


class Source(Protocol):
    """Read from one thread. The same position and limit yield the same records again."""

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        """Go on where the stored offsets say; called before the first `read` and after every failure."""

    def read(self, limit: int) -> SourceSlice | None:
        """The next records, at most `limit` of them; None when there are none now. Never waits."""

    def close(self) -> None: ...


class SourcePlugin(ConnectorPlugin):
    """Named by an entry point of the group `icestream.connectors`."""

    kind: ClassVar[Literal["sink", "source"]] = "source"

    def exactly_once_problem(self, config: Config) -> str | None:
        """Why this config cannot be exactly-once; None if it can."""
        return None
