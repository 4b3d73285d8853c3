"""Offsets of sink connectors, read and changed by hand. The service calls it while the job does not run.

The targets decide, so a change is a commit to each of them, and the consumer group follows. A sink without
any target yet has only the group. Every change may be repeated: it ends in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Protocol, TypeVar

from icestream.api.config import Config
from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.api.offset_admin import OffsetEntry, PartitionPosition
from icestream.api.offsets import Offsets
from icestream.api.sink import Target
from icestream.deadlines import Overdue, lease, within
from icestream.jobs.offsets.checkpoint_offsets import CheckpointOffsetStore
from icestream.jobs.offsets.entries import Moves, entries_from, moves_from
from icestream.jobs.offsets.group_offsets import ConnectorKafka, GroupOffsetStore
from icestream.jobs.sinks.job import sink_job
from icestream.plugins import sink_plugin

_T = TypeVar("_T")

_READ_SECONDS = 30.0
_CHANGE_SECONDS = 80.0
"""Kafka Connect's clients wait 90 s for an answer."""


class _Store(Protocol):
    """Where the offsets of one connector are kept."""

    def read(self) -> Offsets: ...

    def positions(self, moves: Moves) -> list[PartitionPosition]: ...

    def alter(self, moves: Moves) -> str: ...

    def reset(self) -> str: ...

    def close(self) -> None: ...


class SinkOffsets:
    """The `OffsetAdmin` of sinks."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        offsets = _in_time(_READ_SECONDS, name, lambda: self._asked(name, config, lambda store: store.read()))
        return entries_from(offsets)

    def positions(
        self, name: str, config: Config, entries: Sequence[OffsetEntry] = ()
    ) -> list[PartitionPosition]:
        moves = moves_from(entries)
        return _in_time(
            _READ_SECONDS, name, lambda: self._asked(name, config, lambda store: store.positions(moves))
        )

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        moves = moves_from(entries)
        still_awaited = lease(_CHANGE_SECONDS)
        return _in_time(
            _CHANGE_SECONDS,
            name,
            lambda: self._asked(name, config, lambda store: store.alter(moves), still_awaited),
        )

    def reset(self, name: str, config: Config) -> str:
        still_awaited = lease(_CHANGE_SECONDS)
        return _in_time(
            _CHANGE_SECONDS,
            name,
            lambda: self._asked(name, config, lambda store: store.reset(), still_awaited),
        )

    def _asked(
        self,
        name: str,
        config: Config,
        call: Callable[[_Store], _T],
        still_awaited: Callable[[], None] = lambda: None,
    ) -> _T:
        store = sink_offset_store(name, config, self._worker, still_awaited=still_awaited)
        with closing(store):
            return call(store)


def sink_offset_store(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    reached: Callable[[str], None] = lambda point: None,
    still_awaited: Callable[[], None] = lambda: None,
) -> _Store:
    """Of the targets that have a say; without any, the consumer group's."""
    plugin = sink_plugin(config.get("connector.class", ""))
    kafka = ConnectorKafka.of(plugin, config, worker)
    job = sink_job(name, config, plugin.options(config))
    sink = plugin.open(name, config)
    try:
        deciding = [target for target in sink.known_targets() if _decides(target)]
    except BaseException:
        sink.close()
        raise
    if not deciding:
        sink.close()
        return GroupOffsetStore(kafka, job, still_awaited)
    return CheckpointOffsetStore(kafka, job, config, sink, deciding, reached, still_awaited)


def _in_time(seconds: float, name: str, call: Callable[[], _T]) -> _T:
    try:
        return within(seconds, call, f"offsets-{name}")
    except Overdue:
        raise SinkUnavailable(
            f"the offsets of connector '{name}' could not be had in {seconds:.0f} s: its catalog or Kafka "
            "does not answer; a change may have happened in part, so look at the offsets and ask again"
        ) from None


def _decides(target: Target) -> bool:
    """Whether the target tells where the job goes on: it exists, and does not leave that to the group."""
    try:
        found = target.found()
    except ConfigError:
        return False
    return found.checkpoint is not None or not found.follows_group
