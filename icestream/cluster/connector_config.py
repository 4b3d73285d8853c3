"""Is this connector config one that we can run? Every problem and warning at once. Called by the service."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icestream.api.config import Config, ConfigDef
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import CONVERTER_KINDS, SINK_CONNECTOR
from icestream.api.errors import ConfigError, NotFoundError, Problem, UnknownConnectorClass
from icestream.api.java_regex import JavaRegexError, java_pattern
from icestream.api.source import SourcePlugin
from icestream.api.source_settings import SOURCE_CONNECTOR, source_problems
from icestream.cluster.allowed_hosts import host_problems
from icestream.cluster.config_limits import place_problems, refuse_too_many
from icestream.cluster.converter_judge import converter_problems
from icestream.cluster.converter_settings import (
    converter_definition,
    converter_warnings,
    inherited_converter,
    settings_by_prefix,
)
from icestream.cluster.restarts import NEVER, Policy
from icestream.cluster.task_limit import task_problems
from icestream.cluster.unknown_keys import POLICY, judge_unknown_keys
from icestream.cluster.version_judge import version_problems
from icestream.converters.catalog import converter_from
from icestream.logs import masked
from icestream.plugins import Connector, find_connector
from icestream.transforms.chain import chain_from
from icestream.transforms.declared import PREDICATES, TRANSFORMS, Declared, declared
from icestream.validation.settings import SETTINGS as VALIDATION
from icestream.validation.settings import problems as schema_problems

DeepCheck = Callable[[Config], list[Problem]]
"""Opens what the config points at (catalog, table, topic) and says what is wrong with it."""


@dataclass(frozen=True)
class Validation:
    """A config, measured against the settings of its class."""

    connector: Connector
    definition: ConfigDef
    """Without the settings of the converters."""
    config: dict[str, str]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    suggestions: Mapping[str, str] | None = None
    nulls: frozenset[str] = frozenset()
    """Keys that were given, but null."""
    worker: Mapping[str, str] = field(default_factory=dict, repr=False)
    declared: tuple[Declared, ...] = ()
    """Its transforms and predicates."""
    restarts: Policy = NEVER
    """Of a config without problems, when somebody has judged it with its placeholders resolved."""

    @property
    def class_name(self) -> str:
        """The connector's class as the user wrote it."""
        return self.config.get("connector.class", self.connector.class_name)

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
            effective |= inherited_converter(config, worker, prefix)
    return effective | {key: value for key, value in config.items() if value.strip() or key not in effective}


def validate_connector(
    config: Mapping[str, str | None], worker: Config, deep: DeepCheck | None = None
) -> Validation:
    """Check a config on its own, then, if nothing is wrong so far, what it points at."""
    given = {key: value for key, value in config.items() if value is not None}
    connector = _connector(config)
    plugin = connector.plugin
    refuse_too_many(config, plugin.most_names)
    effective = with_worker_defaults(given, worker)
    named = declared(config)
    own = _definition(plugin, named, plugin.definition(given))
    definition = own + converter_definition(effective)
    policy = given.get(POLICY, "typos").strip()
    families = _families(named, effective)
    unknown = judge_unknown_keys(definition, given, policy, families, worker.get(POLICY, "").strip())
    problems = [
        *definition.problems(config),
        *(_source(plugin, given, worker) if isinstance(plugin, SourcePlugin) else _sink(config)),
        *task_problems(given, worker),
        *version_problems(given, connector),
        *converter_problems(given, effective),
        *plugin.problems(given),
        *unknown.problems,
        *_nulls(config),
        *place_problems(given),
        *host_problems(given, worker, plugin),
    ]
    problems = problems or _opinions(effective)
    if not problems and deep is not None:
        problems = deep(effective)
    warnings = (*unknown.warnings, *converter_warnings(given, effective), *plugin.warnings(given))
    return Validation(
        connector,
        own,
        given,
        tuple(sorted(problems, key=_places(definition))),
        warnings,
        unknown.suggestions,
        frozenset(config) - frozenset(given),
        worker,
        tuple(named),
    )


def _definition(plugin: ConnectorPlugin, named: Sequence[Declared], own: ConfigDef) -> ConfigDef:
    definition = framework_of(plugin)
    for one in named:
        definition += one.definition()
    return definition + own


def _families(named: Sequence[Declared], effective: Config) -> dict[str, ConfigDef]:
    """Where a typo is looked for among the settings of one class only, by the prefix of its keys."""
    nothing = ConfigDef(())
    return {
        f"{TRANSFORMS}.": nothing,
        f"{PREDICATES}.": nothing,
        **{one.prefix: one.own for one in named},
        **settings_by_prefix(effective),
    }


def _opinions(config: Config) -> list[Problem]:
    """What the classes themselves say when they get their settings; in Kafka Connect the task fails of it."""
    found: list[Problem] = []
    for kind in CONVERTER_KINDS:
        found += _opinion(functools.partial(converter_from, config, kind))
    return [*found, *_opinion(functools.partial(chain_from, config))]


def _opinion(make: Callable[[], object]) -> Sequence[Problem]:
    try:
        make()
    except ConfigError as error:
        return error.problems
    return ()


def framework_of(plugin: ConnectorPlugin) -> ConfigDef:
    return SOURCE_CONNECTOR if plugin.kind == "source" else SINK_CONNECTOR + VALIDATION


def _places(definition: ConfigDef) -> Callable[[Problem], int]:
    """Problems are told in the order of the settings; those of other keys come last."""
    places = {name: place for place, name in enumerate(definition.names)}
    return lambda problem: places.get(problem.key, len(places))


def _connector(config: Mapping[str, str | None]) -> Connector:
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


def _source(plugin: SourcePlugin, config: Config, worker: Config) -> list[Problem]:
    return source_problems(config, worker, plugin.exactly_once_problem(config))


def _sink(config: Mapping[str, str | None]) -> list[Problem]:
    return [*_topics(config), *schema_problems(config)]


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
        return java_pattern(pattern).fullmatch(topic) is not None
    except JavaRegexError:
        return False
