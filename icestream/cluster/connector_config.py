"""Is this connector config one that we can run? Every problem and warning at once. Called by the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.config import Config, ConfigDef
from icestream.api.connector_settings import CONVERTER_KINDS, SINK_CONNECTOR
from icestream.api.errors import ConfigError, NotFoundError, Problem, UnknownConnectorClass
from icestream.api.source_settings import SOURCE_CONNECTOR, source_problems
from icestream.cluster.converter_plugins import SIMPLE_HEADERS, VERSION, find_converter
from icestream.cluster.restarts import NEVER, Policy
from icestream.cluster.unknown_keys import judge_unknown_keys
from icestream.logs import masked
from icestream.plugins import BYTES, JSON, STRING, Plugin, find_connector

DeepCheck = Callable[[Config], list[Problem]]
"""Opens what the config points at (catalog, table, topic) and says what is wrong with it."""

_CONVERTERS_OF_OTHERS: Final = ("org.apache.kafka.connect.converters.", "io.confluent.", "io.apicurio.")
"""They exist, only not here."""
_KEY_CONVERTERS: Final = (BYTES, JSON, STRING)
_HEADER_CONVERTERS: Final = (BYTES, JSON, SIMPLE_HEADERS, STRING)


@dataclass(frozen=True)
class Validation:
    """A config, measured against the settings of its class."""

    plugin: Plugin
    definition: ConfigDef
    config: dict[str, str]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    suggestions: Mapping[str, str] | None = None
    nulls: frozenset[str] = frozenset()
    """Keys that were given, but null."""
    worker: Mapping[str, str] = field(default_factory=dict, repr=False)
    restarts: Policy = NEVER
    """Of a config without problems, when somebody has judged it with its placeholders resolved."""

    @property
    def class_name(self) -> str:
        """The connector's class as the user wrote it."""
        return self.config.get("connector.class", self.plugin.class_name)

    def raise_if_invalid(self) -> None:
        if self.problems:
            raise ConfigError(self.problems)


def with_worker_defaults(config: Config, worker: Config) -> dict[str, str]:
    """The job's config: converters that the connector does not name are the worker's, with their sub-keys.

    So is where a new connector begins to read.
    """
    effective: dict[str, str] = {}
    if begin := worker.get("consumer.auto.offset.reset", "").strip():
        effective["consumer.override.auto.offset.reset"] = begin
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
    plugin = _plugin(config)
    settings = plugin.settings()
    definition = framework_of(plugin) + settings.definition(given)
    policy = given.get("icestream.unknown.keys", "typos").strip()
    unknown = judge_unknown_keys(definition, given, policy)
    effective = with_worker_defaults(given, worker)
    problems = [
        *definition.problems(config),
        *(_source(plugin, given, worker) if plugin.is_source else _topics(config)),
        *_versions(given, plugin),
        *_framework_not_yet(given),
        *_converters(given, effective, plugin),
        *settings.problems(given),
        *unknown.problems,
        *_nulls(config),
    ]
    if not problems and deep is not None:
        problems = deep(effective)
    warnings = (*unknown.warnings, *settings.warnings(given))
    return Validation(
        plugin,
        definition,
        given,
        tuple(sorted(problems, key=_places(definition))),
        warnings,
        unknown.suggestions,
        frozenset(config) - frozenset(given),
        worker,
    )


def framework_of(plugin: Plugin) -> ConfigDef:
    return SOURCE_CONNECTOR if plugin.is_source else SINK_CONNECTOR


def _places(definition: ConfigDef) -> Callable[[Problem], int]:
    """Problems are told in the order of the settings; those of other keys come last."""
    places = {name: place for place, name in enumerate(definition.names)}
    return lambda problem: places.get(problem.key, len(places))


def _plugin(config: Mapping[str, str | None]) -> Plugin:
    """Without its class nothing can be said about the other keys."""
    named = config.get("connector.class")
    try:
        if named is not None:
            return find_connector(named)
        hidden = masked({key: "null" if value is None else value for key, value in config.items()})
        shown = ", ".join(f"{key}={value}" for key, value in hidden.items())
        reason = f"Connector config {{{shown}}} contains no connector type"
    except NotFoundError as error:
        reason = str(error)
    raise UnknownConnectorClass([Problem("connector.class", reason)])


def _nulls(config: Mapping[str, str | None]) -> list[Problem]:
    message = "Null value can not be supplied as the configuration value."
    return [Problem(key, message) for key, value in config.items() if value is None]


def _source(plugin: Plugin, config: Config, worker: Config) -> list[Problem]:
    return source_problems(config, worker, plugin.source_settings().exactly_once_problem(config))


def _topics(config: Mapping[str, str | None]) -> list[Problem]:
    return [*_topic_names(config), *_topic_choice({key: value or "" for key, value in config.items()})]


def _topic_names(config: Mapping[str, str | None]) -> list[Problem]:
    given = config.get("topics", "")
    if given is None:
        return [Problem("topics", "Configuration 'topics' values must not be null.")]
    names = [name.strip() for name in given.split(",")] if given.strip() else []
    if "" in names:
        return [Problem("topics", "Configuration 'topics' values must not be empty.")]
    if len(set(names)) < len(names):
        return [Problem("topics", "Configuration 'topics' values must not be duplicated.")]
    return []


def _topic_choice(config: Config) -> list[Problem]:
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


def _versions(config: Config, plugin: Plugin) -> list[Problem]:
    """A version that is asked for must be the one we have; we have one of each."""
    asked = [("connector.class", "connector.plugin.version", plugin.class_name, plugin.version)]
    for kind in CONVERTER_KINDS:
        converter = find_converter(config.get(f"{kind}.converter", "").strip())
        if converter is not None:
            # Kafka Connect lists a class once as a converter of records and once as one of headers.
            available = ", ".join([VERSION] * (1 + converter.is_for_records))
            key = f"{kind}.converter"
            asked.append((key, f"{key}.plugin.version", converter.class_name, available))
    found = []
    for key, version_key, class_name, available in asked:
        version = config.get(version_key)
        if version is not None and version.strip() != available.split(",")[0]:
            message = (
                f"Plugin {class_name} not found that matches the version range [{version},{version}], "
                f"available versions: [{available}]"
            )
            found += [Problem(key, message), Problem(version_key, message)]
    return found


def _framework_not_yet(config: Config) -> list[Problem]:
    found = [
        Problem(key, f"'{key}' is not supported by this version; remove it")
        for key in ("transforms", "predicates")
        if config.get(key, "").strip()
    ]
    for kind in ("transforms", "predicates"):
        orphans = [key for key in config if key.startswith(f"{kind}.")]
        if orphans and not config.get(kind, "").strip():
            found.append(Problem(orphans[0], f"'{orphans[0]}' is set, but '{kind}' names nobody; remove it"))
    return found


def supported_converters(plugin: Plugin) -> dict[str, Sequence[str]]:
    """By kind, what the jobs of this connector can read and write."""
    return {
        "key": _KEY_CONVERTERS,
        "value": sorted(plugin.value_converters),
        "header": _HEADER_CONVERTERS,
    }


def _converters(given: Config, effective: Config, plugin: Plugin) -> list[Problem]:
    found: list[Problem] = []
    for kind, supported in supported_converters(plugin).items():
        key = f"{kind}.converter"
        named = (given.get(key) if key in given else effective.get(key, "")) or ""
        found += _converter_problems(key, named.strip(), supported, is_given=key in given)
        is_schemaless = effective.get(f"{key}.schemas.enable", "true").strip().lower() == "false"
        if kind == "value" and not found and not plugin.takes_json_schemas and not is_schemaless:
            found.append(
                Problem(
                    f"{key}.schemas.enable",
                    f"JSON with schemas ('{key}.schemas.enable=true', the default) is not supported "
                    f"by this version; set {key}.schemas.enable=false",
                )
            )
    return found


def _converter_problems(key: str, named: str, supported: Sequence[str], *, is_given: bool) -> list[Problem]:
    converter = find_converter(named)
    if converter is not None and converter.class_name in supported:
        return []
    if converter is not None or named.startswith(_CONVERTERS_OF_OTHERS):
        return [
            Problem(key, f"'{key}={named}' is not supported by this version; use {' or '.join(supported)}")
        ]
    if is_given or named:
        return [
            Problem(key, f"Invalid value {named} for configuration {key}: Class {named} could not be found.")
        ]
    if key != "value.converter":
        return []
    return [Problem(key, f"'{key}' is set neither here nor in the worker's config; set {key}={JSON}")]
