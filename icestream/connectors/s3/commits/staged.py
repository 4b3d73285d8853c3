"""An object that is staged and not visible yet, as tasks hand it to the manager and the ledger keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icestream.api.offsets import Partition
from icestream.connectors.s3.stores.store import Upload


@dataclass(frozen=True)
class StagedObject:
    upload: Upload
    batch: str
    partition: Partition
    first: int
    last: int
    records: int
    is_value: bool = True
    """Not so for keys and headers, whose records are those of another object."""
    replaces: str | None = None
    """The tag of the object that has its name and is to be replaced."""
    size: int = 0
    """In bytes, as it was sent; 0: an entry of an earlier version, which did not say."""

    @property
    def key(self) -> str:
        return self.upload.key

    def to_json(self) -> dict[str, Any]:
        return {
            "upload": self.upload.to_json(),
            "batch": self.batch,
            "partition": list(self.partition),
            "first": self.first,
            "last": self.last,
            "records": self.records,
            "value": self.is_value,
            "replaces": self.replaces,
            "size": self.size,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StagedObject:
        topic, number = stored["partition"]
        return cls(
            Upload.from_json(stored["upload"]),
            stored["batch"],
            Partition(topic, number),
            stored["first"],
            stored["last"],
            stored["records"],
            stored["value"],
            stored["replaces"],
            stored.get("size", 0),
        )


def of_payload(payload: Sequence[Any]) -> list[StagedObject]:
    return [one for one in payload if isinstance(one, StagedObject)]
