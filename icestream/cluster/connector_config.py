"""Is this connector config one that we can run? Every problem and warning at once. Called by the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, ConfigDef
from icestream.api.connector_settings import CONVERTER_KINDS, SINK_CONNECTOR
from icestream.api.errors import ConfigError, NotFoundError, Problem, UnknownConnectorClass
from icestream.api.source_settings import SOURCE_CONNECTOR, source_problems
from icestream.cluster.unknown_keys import judge_unknown_keys
from icestream.logs import masked
from icestream.plugins import BYTES, JSON, STRING, Plugin, find_connector

DeepCheck = Callable[[Config], list[Problem]]
"""Opens what the config points at (catalog, table, topic) and says what is wrong with it."""

_SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_KEY_CONVERTERS: Final = (JSON, STRING, BYTES)
_HEADER_CONVERTERS: Final = (_SIMPLE_HEADERS, *_KEY_CONVERTERS)


@dataclass(frozen=True)
class Validation:
    """A config, measured against the settings of its class."""

    plugin: Plugin
    definition: ConfigDef
    config: dict[str, str]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    suggestions: Mapping[str, str] | None = None

    def raise_if_invalid(self) -> None:
        if self.problems:
            raise ConfigError(self.problems)


def with_worker_defaults(config: Config, worker: Config) -> dict[str, str]:
    """The job's config: converters that the connector does not name are the worker's, with their sub-keys."""
    effective: dict[str, str] = {}
    for kind in CONVERTER_KINDS:
        prefix = f"{kind}.converter"
        if not config.get(prefix, "").strip():
            effective |= {
                key: value for key, value in worker.items() if key == prefix or key.startswith(prefix + ".")
            }
    return effective | {key: value for key, value in config.items() if value.strip() or key not in effective}


def validate_connector(
    config: Mapping[str, str | None], worker: Config, deep: DeepCheck | None = None
) -> Validation:
    """Check a config on its own, then, if nothing is wrong so far, what it points at."""
    given = {key: value for key, value in config.items() if value is not None}
    plugin = _plugin(given)
    settings = plugin.settings()
    definition = (SOURCE_CONNECTOR if plugin.is_source else SINK_CONNECTOR) + settings.definition(given)
    policy = given.get("icestream.unknown.keys", "typos").strip()
    unknown = judge_unknown_keys(definition, given, policy)
    effective = with_worker_defaults(given, worker)
    problems = [
        *_nulls(config),
        *definition.problems(given),
        *(_source(plugin, given, worker) if plugin.is_source else _topics(given)),
        *_framework_not_yet(given),
        *_converters(effective, plugin),
        *settings.problems(given),
        *unknown.problems,
    ]
    if not problems and deep is not None:
        problems = deep(effective)
    warnings = (*unknown.warnings, *_without_effect(given), *settings.warnings(given))
    return Validation(plugin, definition, given, tuple(problems), warnings, unknown.suggestions)


def _plugin(config: Config) -> Plugin:
    """Without its class nothing can be said about the other keys."""
    named = config.get("connector.class", "").strip()
    try:
        if named:
            return find_connector(named)
        shown = ", ".join(f"{key}={value}" for key, value in masked(config).items())
        reason = f"Connector config {{{shown}}} contains no connector type"
    except NotFoundError as error:
        reason = str(error)
    raise UnknownConnectorClass([Problem("connector.class", reason)])


def _nulls(config: Mapping[str, str | None]) -> list[Problem]:
    message = "Null value can not be supplied as the configuration value."
    return [Problem(key, message) for key, value in config.items() if value is None]


def _without_effect(config: Config) -> list[str]:
    return [
        f"'{key}' has no effect: what fails in a record fails again, and outages are retried anyway"
        for key in ("errors.retry.timeout", "errors.retry.delay.max.ms")
        if config.get(key)
    ]


def _source(plugin: Plugin, config: Config, worker: Config) -> list[Problem]:
    return source_problems(config, worker, plugin.source_settings().exactly_once_problem(config))


def _topics(config: Config) -> list[Problem]:
    topics = [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()]
    pattern = config.get("topics.regex", "").strip()
    if topics and pattern:
        message = "topics and topics.regex are mutually exclusive options, but both are set."
        return [Problem("topics", message), Problem("topics.regex", message)]
    if not topics and not pattern:
        message = "Must configure one of topics or topics.regex"
        return [Problem("topics", message), Problem("topics.regex", message)]
    dead_letters = config.get("errors.deadletterqueue.topic.name", "").strip()
    if dead_letters in topics:
        return [
            Problem(
                "topics",
                f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
                f"('topics=[{', '.join(topics)}]') consumed by the connector",
            )
        ]
    if dead_letters and pattern and _matches(pattern, dead_letters):
        return [
            Problem(
                "topics.regex",
                f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
                f"('topics.regex={pattern}') consumed by the connector",
            )
        ]
    return []


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return False


def _framework_not_yet(config: Config) -> list[Problem]:
    found = [
        Problem(key, f"'{key}' is not supported by this version; remove it")
        for key in ("transforms", "predicates", "connector.plugin.version")
        if config.get(key, "").strip()
    ]
    for kind in ("transforms", "predicates"):
        orphans = [key for key in config if key.startswith(f"{kind}.")]
        if orphans and not config.get(kind, "").strip():
            found.append(Problem(orphans[0], f"'{orphans[0]}' is set, but '{kind}' names nobody; remove it"))
    return found


def _converters(config: Config, plugin: Plugin) -> list[Problem]:
    found: list[Problem] = []
    converters = {"key": _KEY_CONVERTERS, "value": plugin.value_converters, "header": _HEADER_CONVERTERS}
    for kind, supported in converters.items():
        key = f"{kind}.converter"
        named = config.get(key, "").strip()
        if not named:
            if kind == "value":
                found.append(
                    Problem(key, f"'{key}' is set neither here nor in the worker's config; set {key}={JSON}")
                )
        elif named not in supported and named not in [name.rpartition(".")[2] for name in supported]:
            found.append(
                Problem(
                    key, f"'{key}={named}' is not supported by this version; use {' or '.join(supported)}"
                )
            )
        elif (
            kind == "value"
            and not plugin.takes_json_schemas
            and config.get(f"{key}.schemas.enable", "true").strip().lower() != "false"
        ):
            found.append(
                Problem(
                    f"{key}.schemas.enable",
                    f"JSON with schemas ('{key}.schemas.enable=true', the default) is not supported "
                    f"by this version; set {key}.schemas.enable=false",
                )
            )
    return found
