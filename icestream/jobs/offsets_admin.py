"""Offsets by hand for every connector: which part answers depends on its class. Called by the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icestream.api.config import Config
from icestream.api.offset_admin import OffsetAdmin, OffsetEntry
from icestream.api.source import SourcePlugin
from icestream.plugins import find_connector


def offset_admin(worker: Mapping[str, str]) -> OffsetAdmin:
    return _ByClass(worker)


class _ByClass:
    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        return self._of(config).read(name, config)

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        return self._of(config).alter(name, config, entries)

    def reset(self, name: str, config: Config) -> str:
        return self._of(config).reset(name, config)

    def _of(self, config: Config) -> OffsetAdmin:
        # Late, because what opens tables is slow to import, and few workers are ever asked for offsets.
        plugin = find_connector(config["connector.class"]).plugin
        if isinstance(plugin, SourcePlugin):
            from icestream.jobs.source_offsets import SourceConnectorOffsets

            return SourceConnectorOffsets(self._worker, plugin)
        from icestream.jobs.sink_offsets import SinkOffsets

        return SinkOffsets(self._worker)
