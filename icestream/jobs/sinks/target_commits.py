"""The last commits of a connector's targets, as the targets remember them. Asked by the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.history import TableCommit
from icestream.api.sink import SinkPlugin
from icestream.jobs.sinks.limited_sink import LimitedSink
from icestream.plugins import find_connector

_MOST_TARGETS: Final = 20
_SECONDS: Final = 30.0
"""For each target: somebody looks at a page."""


def target_commits(name: str, config: Mapping[str, str], most: int) -> list[TableCommit]:
    """Of all targets, the newest first; empty for a source and for targets that remember none."""
    plugin = find_connector(config.get("connector.class", "")).plugin
    if not isinstance(plugin, SinkPlugin):
        return []
    sink = LimitedSink(lambda: plugin.open(name, config), _SECONDS)
    try:
        targets = list(sink.targets())[:_MOST_TARGETS]
        found = [commit for target in targets for commit in target.commits(most)]
    finally:
        sink.close()
    return sorted(found, key=lambda one: one.at_ms, reverse=True)[:most]
