"""Offsets of source connectors, read and changed by hand. The service calls it while the job does not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from icestream.api.config import Config
from icestream.api.offset_admin import OffsetEntry
from icestream.connectors.file.source_offsets import refuse_bad_offsets
from icestream.jobs.source_outlets import open_outlet
from icestream.jobs.source_stores import SourcePlace

_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"


class SourceConnectorOffsets:
    """The `OffsetAdmin` of sources."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        store = SourcePlace(self._worker, config).store()
        try:
            return store.read(name)
        finally:
            store.close()

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        refuse_bad_offsets(config, entries)
        self._write(name, config, entries)
        return _ALTERED

    def reset(self, name: str, config: Config) -> str:
        known = [OffsetEntry(entry.partition, None) for entry in self.read(name, config)]
        refuse_bad_offsets(config, known)
        if known:
            self._write(name, config, known)
        return _RESET

    def _write(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> None:
        place = SourcePlace(self._worker, config)
        if not place.is_exactly_once:
            store = place.store()
            try:
                store.write(name, entries)
            finally:
                store.close()
            return
        # With the job's own transactional id: a job that is still alive somewhere is fenced by it.
        outlet = open_outlet(name, place)
        try:
            outlet.commit(entries)
        except BaseException:
            outlet.abandon()
            raise
        outlet.close()
