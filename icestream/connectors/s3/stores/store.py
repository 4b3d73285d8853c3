"""What the sink needs of a store of objects: `s3_store`, `cloud_store` and `folder_store` are such.

An object is staged as an upload for its final key: nobody sees it there. `complete` makes it visible, on
condition of what is there. `writer` stages; `ledger` and `publish` do the rest.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

from icestream.api.errors import SinkUnavailable


@dataclass(frozen=True)
class Upload:
    """An object that is staged. Plain data: it crosses process boundaries, and is kept in the ledger."""

    key: str
    id: str
    parts: tuple[str, ...]
    """What the store calls the content of each part, in order."""

    def to_json(self) -> list[Any]:
        return [self.key, self.id, list(self.parts)]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Upload:
        key, id_, parts = stored
        return cls(key, id_, tuple(parts))


@dataclass(frozen=True)
class ObjectFacts:
    """An object that is there."""

    key: str
    size: int
    tag: str
    """Another one if the content is replaced."""
    changed: dt.datetime
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Only if it was asked for by itself, not in lists."""


@dataclass(frozen=True)
class OpenUpload:
    key: str
    id: str
    begun: dt.datetime


class Exists(Exception):
    """Something else is there than the condition says; nothing was changed."""


class NoSuchUpload(Exception):
    """It was completed, aborted, or is too old for the store."""


class ObjectStore(Protocol):
    """Errors but the two above are SinkUnavailable, or ConfigError where the config is to blame."""

    name: str
    """As a sentence names it, such as `s3://bucket`."""

    def upload(self, key: str, content: IO[bytes], metadata: Mapping[str, str]) -> Upload:
        """Stage an object: the whole content, from where it stands."""

    def complete(self, upload: Upload, replaces: str | None = None) -> None:
        """Make an upload visible if nothing has its key, or if what has it still has the tag `replaces`.
        Exists, NoSuchUpload. Completed before by somebody: as the store answers, one of these or nothing."""

    def abort(self, upload_key: str, upload_id: str) -> None:
        """Remove an upload; one that is gone is as good."""

    def is_open(self, upload: Upload) -> bool:
        """Whether an upload can still be completed."""

    def open_uploads(self, prefix: str) -> Iterator[OpenUpload]: ...

    def put(self, key: str, content: bytes) -> None:
        """An object if nothing has its key; else Exists. AnswerLost: nobody knows."""

    def replace(self, key: str, content: bytes) -> None:
        """An object, whatever was there."""

    def get(self, key: str) -> bytes | None:
        """The content of an object of the ledger; None if there is none."""

    def read(self, key: str) -> bytes | None:
        """The content of an object with records."""

    def facts(self, key: str) -> ObjectFacts | None:
        """An object with its metadata; None if there is none."""

    def list(self, prefix: str, after: str = "") -> Iterator[ObjectFacts]:
        """Objects in the order of their keys."""

    def remove(self, keys: Sequence[str]) -> None:
        """Of our own ledger only."""

    def close(self) -> None: ...


class AnswerLost(SinkUnavailable):
    """A request was sent, and no answer came: nobody knows what it did."""
