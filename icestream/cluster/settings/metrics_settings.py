"""Where a worker tells its metrics: its settings, checked and understood. Part of the worker's config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.errors import Problem
from icestream.cluster.settings.rest_settings import Listener, parsed_listeners
from icestream.cluster.settings.rest_tls import Tls, read_tls

LISTENERS: Final = "metrics.listeners"
_OURS: Final = "icestream.metrics.listeners"
_STRIMZI: Final = "prometheus.metrics.reporter.listener"
_STRIMZI_SWITCH: Final = "prometheus.metrics.reporter.listener.enable"

_DIALECTS: Final = "icestream.metrics.dialects"
_PARTITIONS: Final = "icestream.metrics.partitions"
DIALECTS: Final = ("strimzi", "confluent")
"""The names of Strimzi's rules for the JMX exporter; those of Confluent's rules and of Strimzi's Metrics
Reporter."""


def _unknown_dialect(names: Sequence[str]) -> str | None:
    unknown = [name for name in names if name not in DIALECTS]
    return f"'{unknown[0]}' is no dialect; name some of {', '.join(DIALECTS)}" if unknown else None


METRICS: Final = ConfigDef(
    (
        Setting(
            LISTENERS,
            Type.LIST,
            None,
            "Where /metrics listens besides REST, such as http://:9404; nobody logs in there.",
            importance="LOW",
        ),
        Setting(_OURS, Type.LIST, None, "The same as 'metrics.listeners'.", importance="LOW"),
        Setting(
            _STRIMZI,
            Type.STRING,
            None,
            "The same, as Strimzi's Metrics Reporter calls it: one address.",
            importance="LOW",
        ),
        Setting(
            _STRIMZI_SWITCH, Type.BOOLEAN, True, "Whether that address is listened on.", importance="LOW"
        ),
        Setting(
            "icestream.metrics.rest.enabled",
            Type.BOOLEAN,
            True,
            "Whether REST answers /metrics too; Kafka Connect says 404 there.",
            importance="LOW",
        ),
        Setting(
            _DIALECTS,
            Type.LIST,
            list(DIALECTS),
            "Whose names Kafka Connect's own metrics have: strimzi, confluent, or both; empty: neither.",
            check=_unknown_dialect,
            importance="LOW",
        ),
        Setting(
            _PARTITIONS,
            Type.BOOLEAN,
            False,
            "Whether the lag of each partition is a series of its own.",
            importance="LOW",
        ),
    ),
    prefixes=("prometheus.metrics.reporter.",),
)


@dataclass(frozen=True)
class MetricsConfig:
    listeners: tuple[Listener, ...] = ()
    tls: Tls | None = None
    """That of REST, where one of them has https."""
    on_rest: bool = True
    dialects: tuple[str, ...] = DIALECTS
    shows_partitions: bool = False


def parse_metrics(raw: Config, problems: list[Problem]) -> MetricsConfig:
    """What is wrong is added to the problems; the values are those of a config without any."""
    found: dict[str, Listener] = {}
    for key in (LISTENERS, _OURS, _STRIMZI):
        if key == _STRIMZI and raw.get(_STRIMZI_SWITCH, "true").strip().lower() == "false":
            continue
        found |= {one.url: one for one in parsed_listeners(key, raw.get(key, ""), problems)}
    on_rest = raw.get("icestream.metrics.rest.enabled", "true").strip().lower() != "false"
    has_https = any(one.scheme == "https" for one in found.values())
    tls = read_tls(raw, "listeners.https.", problems, []) if has_https else None
    given = raw.get(_DIALECTS, ",".join(DIALECTS)).split(",")
    dialects = tuple(name for name in DIALECTS if name in [one.strip() for one in given])
    shows_partitions = raw.get(_PARTITIONS, "").strip().lower() == "true"
    return MetricsConfig(tuple(found.values()), tls, on_rest, dialects, shows_partitions)
