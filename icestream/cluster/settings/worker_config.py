"""A worker's config, checked and understood. Called by the command line before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from icestream.api.config import Config, ConfigDef
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.configs.checks import unknown_keys
from icestream.cluster.configs.converter_settings import (
    converter_definition,
    converter_warnings,
    settings_by_prefix,
)
from icestream.cluster.configs.providers import Providers, providers_from
from icestream.cluster.settings.actuator_settings import ActuatorConfig, parse_actuator
from icestream.cluster.settings.metrics_settings import MetricsConfig, parse_metrics
from icestream.cluster.settings.rest_settings import RestConfig, parse_rest
from icestream.cluster.settings.worker_settings import (
    DISTRIBUTED,
    STANDALONE,
    WITHOUT_EFFECT,
    of_the_other_mode,
)
from icestream.kafka.clients import worker_findings
from icestream.kafka.timing import Timing
from icestream.plugins import installed


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker of either mode needs to know; `raw` goes to the data plane and to connectors as it is."""

    raw: Mapping[str, str]
    rest: RestConfig
    metrics: MetricsConfig
    actuator: ActuatorConfig
    providers: Providers
    log_level: str
    log_format: str
    audit_file: Path | None
    stop_timeout: float
    tracks_topics: bool
    resets_topics: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class StandaloneConfig(WorkerConfig):
    state_file: Path


@dataclass(frozen=True)
class DistributedConfig(WorkerConfig):
    group: str
    timing: Timing
    config_topic: str
    status_topic: str


def parse_standalone(raw: Config) -> StandaloneConfig:
    """Every problem at once, as a ConfigError; what has no effect becomes a warning."""
    common, values = _parsed(raw, STANDALONE)
    own, offsets = values["icestream.state.file"], values["offset.storage.file.filename"]
    if not own and not offsets:
        key = "offset.storage.file.filename"
        raise ConfigError(
            [Problem(key, f'Missing required configuration "{key}" which has no default value.')]
        )
    common["raw"] = {**common["raw"], "offset.storage.file.filename": offsets or f"{own}.offsets"}
    return StandaloneConfig(**common, state_file=Path(own or f"{offsets}.icestream.json"))


def parse_distributed(raw: Config) -> DistributedConfig:
    """Every problem at once, as a ConfigError; what has no effect becomes a warning."""
    common, values = _parsed(raw, DISTRIBUTED)
    timing = Timing(
        values["session.timeout.ms"], values["heartbeat.interval.ms"], values["rebalance.timeout.ms"]
    )
    if timing.heartbeat_interval >= timing.session_timeout:
        raise ConfigError(
            [
                Problem(
                    "heartbeat.interval.ms",
                    f"'heartbeat.interval.ms={timing.heartbeat_interval}' is not below "
                    f"'session.timeout.ms={timing.session_timeout}'; a third of it is usual",
                )
            ]
        )
    return DistributedConfig(
        **common,
        group=values["group.id"],
        timing=timing,
        config_topic=values["config.storage.topic"],
        status_topic=values["status.storage.topic"],
    )


def _parsed(given: Config, definition: ConfigDef) -> tuple[dict[str, Any], dict[str, Any]]:
    providers = providers_from(given)
    raw = providers.resolved(given)
    foreign = of_the_other_mode(definition)
    has_peers = definition is DISTRIBUTED
    definition += _of_converters(raw) + _of_connectors()
    ours = {key: value for key, value in raw.items() if key not in foreign}
    policy = raw.get("icestream.unknown.keys", "typos").strip()
    unknown = unknown_keys(definition, ours, policy, settings_by_prefix(raw))
    clients = worker_findings(raw)
    problems = [*definition.problems(raw), *unknown.problems, *clients.problems]
    metrics = parse_metrics(raw, problems)
    actuator = parse_actuator(raw, problems)
    try:
        rest = parse_rest(raw, has_peers=has_peers)
    except ConfigError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ConfigError(problems)
    values = definition.parse(raw)
    common = {
        "raw": raw,
        "rest": rest,
        "metrics": metrics,
        "actuator": actuator,
        "providers": providers,
        "log_level": values["icestream.log.level"].upper(),
        "log_format": values["icestream.log.format"].lower(),
        "audit_file": Path(values["icestream.audit.file"]) if values["icestream.audit.file"] else None,
        "stop_timeout": values["task.shutdown.graceful.timeout.ms"] / 1000,
        "tracks_topics": values["topic.tracking.enable"],
        "resets_topics": values["topic.tracking.allow.reset"],
        "warnings": (
            *installed().problems,
            *unknown.warnings,
            *rest.warnings,
            *clients.warnings,
            *converter_warnings(raw, raw),
            *(
                f"'{key}' has no effect: {why}"
                for key, why in WITHOUT_EFFECT.items()
                if key in raw and not (key == "plugin.path" and _names_a_jar(raw))
            ),
            *(f"'{key}' has no effect in this mode" for key in raw if key in foreign),
        ),
    }
    return common, values


def _of_converters(raw: Config) -> ConfigDef:
    """The settings of the worker's converters. None is required: connectors may bring converters of their
    own."""
    known = converter_definition(raw)
    settings = [replace(one, default=None) if one.is_required else one for one in known.settings]
    return replace(known, settings=settings)


def _of_connectors() -> ConfigDef:
    """The worker's settings that are about one connector."""
    found = [setting for plugin in installed().plugins for setting in plugin.worker_settings]
    return ConfigDef(tuple({setting.name: setting for setting in found}.values()))


def _names_a_jar(raw: Config) -> bool:
    return any(plugin.is_on_plugin_path(raw) for plugin in installed().plugins)
