"""Is this connector config one that we can run? One pass, from which `validate`, `create`, `PUT config` and
the start of a stored connector take their answers.

`validate_connector` asks every check of `CHECKS` and tells all that they find. Only if nothing is wrong so
far are the converters and transforms made, and only then is anything opened. `Validator` adds what a worker
knows besides: it resolves placeholders first and shows none of their values.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from icestream.api.config import Config, ConfigDef
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import CONVERTER_KINDS, SINK_CONNECTOR
from icestream.api.errors import ConfigError, Findings, NotFoundError, Problem, UnknownConnectorClass
from icestream.api.source import SourcePlugin
from icestream.api.source_settings import SOURCE_CONNECTOR, source_problems
from icestream.cluster.configs.allowed_hosts import host_problems
from icestream.cluster.configs.checks import (
    UNKNOWN_KEYS,
    converter_problems,
    null_problems,
    topic_problems,
    unknown_keys,
    version_problems,
)
from icestream.cluster.configs.converter_settings import (
    converter_definition,
    converter_warnings,
    inherited_converter,
    settings_by_prefix,
)
from icestream.cluster.configs.limits import place_problems, refuse_too_many, refuse_too_much, task_problems
from icestream.cluster.configs.masking import masked_config
from icestream.cluster.configs.override_policy import policy_problems
from icestream.cluster.configs.properties import ConnectorFile
from icestream.cluster.configs.secrets import concealing, discreet, discreet_problem, secrets_of
from icestream.cluster.restarts import NEVER, Policy
from icestream.converters.catalog import converter_from
from icestream.jobs.processes.job_place import job_place_problems
from icestream.kafka.clients import override_findings
from icestream.plugins import Connector, find_connector
from icestream.transforms.chain import chain_from
from icestream.transforms.declared import PREDICATES, TRANSFORMS, Declared, declared
from icestream.validation.settings import SETTINGS as RECORD_SCHEMAS
from icestream.validation.settings import problems as record_schema_problems

_log = logging.getLogger(__name__)

Probing = Callable[[Config], list[Problem]]
"""Opens what a config points at (catalog, table, topic) and says what is wrong with it."""


@dataclass(frozen=True)
class Validation:
    """A config, and what the checks have found."""

    connector: Connector
    definition: ConfigDef
    """Without the settings of the converters."""
    config: dict[str, str]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    suggestions: Mapping[str, str] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    """Keys that were given, but null."""
    worker: Mapping[str, str] = field(default_factory=dict, repr=False)
    declared: tuple[Declared, ...] = ()
    """Its transforms and predicates."""
    restarts: Policy = NEVER
    """Of a config without problems, whose placeholders are resolved."""

    @property
    def class_name(self) -> str:
        """The connector's class as the user wrote it."""
        return self.config.get("connector.class", self.connector.class_name)

    def raise_if_invalid(self) -> None:
        if self.problems:
            raise ConfigError(self.problems)


@dataclass(frozen=True)
class Candidate:
    """A config that is being validated, and what the checks look at besides."""

    connector: Connector
    config: Mapping[str, str | None] = field(repr=False)
    worker: Config = field(repr=False)

    @property
    def plugin(self) -> ConnectorPlugin:
        return self.connector.plugin

    @functools.cached_property
    def given(self) -> dict[str, str]:
        """Without nulls."""
        return {key: value for key, value in self.config.items() if value is not None}

    @functools.cached_property
    def effective(self) -> dict[str, str]:
        """What a job would be made of."""
        return with_worker_defaults(self.given, self.worker)

    @functools.cached_property
    def declared(self) -> Sequence[Declared]:
        return declared(self.config)

    @functools.cached_property
    def own_definition(self) -> ConfigDef:
        """The settings of the connector and of its transforms and predicates."""
        definition = framework_of(self.plugin)
        for one in self.declared:
            definition += one.definition()
        return definition + self.plugin.definition(self.given)

    @functools.cached_property
    def definition(self) -> ConfigDef:
        """With the settings of the converters."""
        return self.own_definition + converter_definition(self.effective)


def framework_of(plugin: ConnectorPlugin) -> ConfigDef:
    """The settings of every sink, or of every source."""
    return SOURCE_CONNECTOR if plugin.kind == "source" else SINK_CONNECTOR + RECORD_SCHEMAS


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


# -- the checks --


def _settings(candidate: Candidate) -> Findings:
    return _found(candidate.definition.problems(candidate.config))


def _sink_or_source(candidate: Candidate) -> Findings:
    plugin = candidate.plugin
    if isinstance(plugin, SourcePlugin):
        cannot = plugin.exactly_once_problem(candidate.given)
        return _found(source_problems(candidate.given, candidate.worker, cannot))
    return _found([*topic_problems(candidate.config), *record_schema_problems(candidate.config)])


def _unknown_keys(candidate: Candidate) -> Findings:
    """A typo is looked for among the settings of one class only, by the prefix of its keys."""
    families = {
        f"{TRANSFORMS}.": ConfigDef(()),
        f"{PREDICATES}.": ConfigDef(()),
        **{one.prefix: one.own for one in candidate.declared},
        **settings_by_prefix(candidate.effective),
    }
    policy = candidate.given.get(UNKNOWN_KEYS, "typos").strip()
    workers = candidate.worker.get(UNKNOWN_KEYS, "").strip()
    return unknown_keys(candidate.definition, candidate.given, policy, families, workers)


def _converters(candidate: Candidate) -> Findings:
    return Findings(
        tuple(converter_problems(candidate.given, candidate.effective)),
        tuple(converter_warnings(candidate.given, candidate.effective)),
    )


def _plugin(candidate: Candidate) -> Findings:
    plugin, given = candidate.plugin, candidate.given

    def ask() -> Findings:
        problems = (*_missing_packages(candidate), *plugin.problems(given))
        return Findings(problems, tuple(plugin.warnings(given)))

    return _asked(candidate, ask)


def _asked(candidate: Candidate, ask: Callable[[], Findings]) -> Findings:
    """A plugin's own bug is told of the config that shows it, and ends nothing."""
    plugin = candidate.plugin
    try:
        return ask()
    except ConfigError as error:
        return _found(error.problems)
    except Exception as error:  # whatever the code of others raises; its text may quote a secret
        place = traceback.extract_tb(error.__traceback__)[-1]
        _log.warning(
            "%s raised %s at %s:%s", type(plugin).__name__, type(error).__name__, place.filename, place.lineno
        )
        name = candidate.connector.class_name
        return _found(
            [
                Problem(
                    "connector.class",
                    f"The plugin of {name} cannot check this config: it raised {type(error).__name__}; "
                    "correct or update the package that it is from",
                )
            ]
        )


def _missing_packages(candidate: Candidate) -> Iterator[Problem]:
    """What an extra of Icestream would bring. Looked for, not imported: the names are the plugin's own."""
    for module, extra in candidate.plugin.packages(candidate.given).items():
        if importlib.util.find_spec(module) is None:
            yield Problem(
                "connector.class",
                f"{candidate.connector.class_name} needs Python's '{module}', which this worker lacks; "
                f"install it with: pip install 'icestream[{extra}]', and start the worker again",
            )


def _allowed_here(candidate: Candidate) -> Findings:
    """Whether the worker lets the connector run, and with these settings of Kafka's clients."""
    plugin, given, worker = candidate.plugin, candidate.given, candidate.worker
    # Kafka's client is not even asked about a setting that nobody may override.
    own = _asked(candidate, lambda: _found(plugin.not_allowed(given, worker))).problems
    refused = own or policy_problems(worker, given, plugin.client_prefixes)
    return _found(refused) if refused else override_findings(worker, given, plugin.client_prefixes)


def _hosts(candidate: Candidate) -> Findings:
    return _asked(
        candidate, lambda: _found(host_problems(candidate.given, candidate.worker, candidate.plugin))
    )


CHECKS: Final[Sequence[Callable[[Candidate], Findings]]] = (
    _settings,
    _sink_or_source,
    lambda candidate: _found(task_problems(candidate.given, candidate.worker)),
    lambda candidate: _found(job_place_problems(candidate.plugin, candidate.given, candidate.worker)),
    lambda candidate: _found(version_problems(candidate.given, candidate.connector)),
    _unknown_keys,
    _converters,
    _plugin,
    lambda candidate: _found(null_problems(candidate.config)),
    lambda candidate: _found(place_problems(candidate.given)),
    _hosts,
    _allowed_here,
)
"""All are asked, and open nothing. Of two that blame one key, the first is told first."""


def _found(problems: Sequence[Problem]) -> Findings:
    return Findings(tuple(problems))


def _made(config: Config) -> list[Problem]:
    """What converters and transforms say when they are made; in Kafka Connect the task fails of it."""
    found: list[Problem] = []
    makers: list[Callable[[], object]] = [functools.partial(chain_from, config)]
    makers += [functools.partial(converter_from, config, kind) for kind in CONVERTER_KINDS]
    for make in makers:
        try:
            make()
        except ConfigError as error:
            found += error.problems
    return found


# -- the pass --


def validate_connector(
    config: Mapping[str, str | None], worker: Config, probing: Probing | None = None
) -> Validation:
    """Check a config on its own, then, if nothing is wrong so far, what it points at."""
    candidate = Candidate(_connector(config), config, worker)
    refuse_too_many(config, candidate.plugin.most_names)
    findings = Findings()
    for check in CHECKS:
        findings += check(candidate)
    problems = list(findings.problems) or _made(candidate.effective)
    if not problems and probing is not None:
        problems = probing(candidate.effective)
    return Validation(
        candidate.connector,
        candidate.own_definition,
        candidate.given,
        tuple(sorted(problems, key=_places(candidate.definition))),
        findings.warnings,
        findings.suggestions,
        frozenset(config) - frozenset(candidate.given),
        worker,
        tuple(candidate.declared),
    )


def _connector(config: Mapping[str, str | None]) -> Connector:
    """Without its class nothing can be said about the other keys."""
    named = config.get("connector.class")
    try:
        if named is not None:
            return find_connector(named)
        hidden = masked_config({key: "null" if value is None else value for key, value in config.items()})
        shown = ", ".join(f"{key}={value}" for key, value in hidden.items())
        reason = f"Connector config {{{shown}}} contains no connector type"
    except NotFoundError as error:
        reason = str(error)
    raise UnknownConnectorClass([Problem("connector.class", reason)])


def _places(definition: ConfigDef) -> Callable[[Problem], int]:
    """Problems are told in the order of the settings; those of other keys come last."""
    places = {name: place for place, name in enumerate(definition.names)}
    return lambda problem: places.get(problem.key, len(places))


@dataclass(frozen=True)
class Validator:
    """The pass with all that a worker knows: its config, its config providers. Used by the service.

    Whatever is said of a config shows placeholders where the providers have secrets.
    """

    worker: Config = field(repr=False)
    probing: Probing | None
    resolve: Callable[[Config], dict[str, str]]

    def validated(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        """Every problem and warning; `deep` opens what the config points at, if nothing else is wrong."""
        refuse_too_much(config)
        given = {key: value for key, value in config.items() if value is not None}
        resolved = self.resolve(given)
        secrets = secrets_of(given, resolved)
        with concealing(secrets):
            validation = validate_connector(
                {**config, **resolved}, self.worker, self.probing if deep else None
            )
        return replace(
            _without_secrets(validation, secrets) if secrets else validation,
            config=given,
            restarts=NEVER if validation.problems else Policy.of(resolved),
        )

    def valid(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        """A validation without problems; raises ConfigError with all of them."""
        validation = self.validated(config, deep=deep)
        validation.raise_if_invalid()
        return validation

    def refuse_invalid(self, file: ConnectorFile) -> None:
        """Raise ConfigError for a connector file of the command line, with the connector's name."""
        try:
            self.valid(file.config, deep=False)
        except ConfigError as error:
            named = [Problem(one.key, f"connector '{file.name}': {one}") for one in error.problems]
            raise ConfigError(named) from None

    def effective(self, config: Config) -> dict[str, str]:
        """What a job is made of, with placeholders."""
        return with_worker_defaults(config, self.worker)

    @contextmanager
    def job_config(self, config: Config) -> Iterator[dict[str, str]]:
        """The same, with the values: for what uses it at once and forgets it. Errors tell none of them."""
        effective = self.effective(config)
        resolved = self.resolve(effective)
        with concealing(secrets_of(effective, resolved)):
            yield resolved


def _without_secrets(validation: Validation, secrets: Mapping[str, str]) -> Validation:
    """Names of transforms and of tables are parts of keys and of groups, so these are looked at, too."""
    settings = tuple(
        replace(
            one,
            name=discreet(one.name, secrets),
            doc=discreet(one.doc, secrets),
            group=one.group and discreet(one.group, secrets),
            display_name=discreet(one.display_name, secrets),
        )
        for one in validation.definition.settings
    )
    return replace(
        validation,
        definition=replace(validation.definition, settings=settings),
        declared=tuple(replace(one, alias=discreet(one.alias, secrets)) for one in validation.declared),
        problems=tuple(discreet_problem(one, secrets) for one in validation.problems),
        warnings=tuple(discreet(one, secrets) for one in validation.warnings),
        suggestions={key: discreet(known, secrets) for key, known in validation.suggestions.items()},
    )
