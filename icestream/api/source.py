"""What a source connector is to the source manager, `jobs.sources.manager`, which runs all of them.

A source knows nothing of Kafka: it says which records there are, and how far it has read. The manager sends
the records and stores the offsets. `docs/write-a-connector.md` explains one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin
from icestream.api.offset_admin import OffsetEntry

if TYPE_CHECKING:
    # For the type only. `records` is built on `api`; a source that makes records imports both.
    from icestream.records.records import Records


@dataclass(frozen=True)
class SourceBatch:
    """Records that were read together, and how far the source was read with them."""

    records: Sequence[Records]
    """Groups of alike records: one topic, one schema of the key, one of the value. Their `rows` are places in
    the batch, which is the order of sending; `partitions` may say where each goes in Kafka; `timestamps` go
    with the records."""
    after: Sequence[OffsetEntry]
    """One entry for each source partition that the batch read from."""

    def __len__(self) -> int:
        return sum(len(group) for group in self.records)


class Source(Protocol):
    """What one task reads from. No two of its methods are called at the same time."""

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        """Go on from the stored offsets of the connector, those of other tasks among them.

        Called before the first `read` and again after every failure, so this is the place to connect.
        """

    def read(self, limit: int) -> SourceBatch | None:
        """The next records, at most `limit` of them; None when there are none now.

        Returns soon, as the tasks of a connector take their turns together. The same offsets and limit yield
        the same records again.
        """

    def close(self) -> None: ...


class SourcePlugin(ConnectorPlugin, ABC):
    """A source connector, named by an entry point of the group `icestream.connectors`.

    A method that finds something wrong raises an error of `api.errors`.
    """

    kind: ClassVar[Literal["sink", "source"]] = "source"

    def tasks(self, config: Config, most: int) -> Sequence[Config]:
        """The configs of its tasks, at most so many; each reads source partitions of its own. Opens nothing:
        REST asks, to show the tasks, and before secrets are resolved."""
        return [config]

    @abstractmethod
    def open(self, task: Config) -> Source:
        """The source of one task; it connects when it is told to `seek`."""

    def check_offsets(self, config: Config, entries: Sequence[OffsetEntry]) -> None:
        """Raise `BadOffsets` if somebody asks for offsets, by hand, that this connector cannot take."""

    def exactly_once_problem(self, config: Config) -> str | None:
        """Why this config cannot be exactly-once; None if it can."""
        return None
