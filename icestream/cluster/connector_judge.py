"""Judges connector configs with all that a worker knows: its defaults, config providers, client settings.

Used by the service. Whatever is said of a config shows placeholders where the providers have secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.config_limits import refuse_too_much
from icestream.cluster.connector_config import DeepCheck, Validation, validate_connector, with_worker_defaults
from icestream.cluster.properties import ConnectorFile
from icestream.cluster.restarts import NEVER, Policy
from icestream.cluster.secrets import concealing, discreet, discreet_problem, secrets_of
from icestream.kafka.clients import ClientVerdict


def discreet_names(validation: Validation, secrets: Mapping[str, str]) -> Validation:
    """Names of transforms and of tables are parts of keys and of groups."""
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
    )


@dataclass(frozen=True)
class ConnectorJudge:
    worker: Config
    deep_check: DeepCheck | None
    resolve: Callable[[Config], dict[str, str]]
    judge_overrides: Callable[[Config], ClientVerdict]

    def judged(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        """Every problem and warning; `deep` opens what the config points at, if nothing else is wrong."""
        refuse_too_much(config)
        given = {key: value for key, value in config.items() if value is not None}
        resolved = self.resolve(given)
        secrets = secrets_of(given, resolved)
        with concealing(secrets):
            # Before anything is opened with settings that are not allowed.
            verdict = self.judge_overrides(resolved)
            opens = self.deep_check if deep and not verdict.problems else None
            validation = validate_connector({**config, **resolved}, self.worker, opens)
        problems = [*validation.problems, *verdict.problems]
        return replace(
            discreet_names(validation, secrets) if secrets else validation,
            config=given,
            problems=tuple(discreet_problem(one, secrets) for one in problems),
            restarts=NEVER if problems else Policy.of(resolved),
            warnings=tuple(discreet(one, secrets) for one in (*validation.warnings, *verdict.warnings)),
            suggestions={
                key: discreet(known, secrets) for key, known in (validation.suggestions or {}).items()
            },
        )

    def valid(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        """A validation without problems; raises ConfigError with all of them."""
        validation = self.judged(config, deep=deep)
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
