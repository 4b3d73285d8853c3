"""The settings that every source connector has, whatever its class, and what they say about new topics.

The control plane validates with them, the data plane reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type, subset
from icestream.api.connector_settings import CONNECTOR
from icestream.api.errors import Problem
from icestream.api.java_regex import java_pattern, pattern_problem

_PREFIX: Final = "topic.creation."
_DEFAULT_GROUP: Final = "default"
_GROUP_KEYS: Final = ("include", "exclude", "replication.factor", "partitions")
BROKER_DEFAULT: Final = -1


def _no_group_twice(groups: Sequence[str]) -> str | None:
    return "Duplicate alias provided." if len(set(groups)) < len(groups) else None


def _one_of(*names: str) -> Any:
    def check(value: str) -> str | None:
        if value.lower() in names:
            return None
        return f"String must be one of (case insensitive): {', '.join(name.upper() for name in names)}"

    return check


SOURCE_CONNECTOR: Final = CONNECTOR + ConfigDef(
    (
        Setting(
            "topic.creation.groups",
            Type.LIST,
            [],
            "Names of groups of topics that are created alike.",
            check=_no_group_twice,
            importance="LOW",
            group="Topic Creation",
            order=1,
            width="LONG",
            display_name="Topic Creation Groups",
        ),
        Setting(
            "exactly.once.support",
            Type.STRING,
            "requested",
            "required: refuse a config that cannot be exactly-once; requested: take it as it is.",
            check=_one_of("required", "requested"),
            group="Exactly Once Support",
            order=2,
            width="SHORT",
            display_name="Exactly once support",
        ),
        Setting(
            "transaction.boundary",
            Type.STRING,
            "poll",
            "What a transaction holds: the records of a poll, or those of an interval.",
            check=_one_of("interval", "poll", "connector"),
            group="Exactly Once Support",
            order=3,
            width="SHORT",
            display_name="Transaction Boundary",
        ),
        Setting(
            "transaction.boundary.interval.ms",
            Type.LONG,
            None,
            "How long a transaction lasts under transaction.boundary=interval; the worker's "
            "offset.flush.interval.ms when absent.",
            at_least=0,
            importance="LOW",
            group="Exactly Once Support",
            order=4,
            width="SHORT",
            display_name="Transaction boundary interval",
        ),
        Setting(
            "offsets.storage.topic",
            Type.STRING,
            None,
            "A topic of its own for the offsets of this connector, on distributed workers.",
            check=lambda value: None if value else "String must be non-empty",
            importance="LOW",
            group="offsets.topic",
            order=1,
            width="LONG",
            display_name="Offsets topic",
        ),
    ),
    prefixes=(_PREFIX,),
)


@dataclass(frozen=True)
class NewTopic:
    """How a topic is created; -1 leaves the number to the broker."""

    partitions: int = BROKER_DEFAULT
    replication: int = BROKER_DEFAULT
    config: Mapping[str, str] | None = None


def new_topic(topic: str, config: Config) -> NewTopic:
    """What the connector says about a topic that is missing: its first group that matches, or the default.

    Without any `topic.creation.*` key the broker decides all; with one, the default group is required.
    """
    if not any(key.startswith(_PREFIX) for key in config):
        return NewTopic()
    fallback = _group_settings(_DEFAULT_GROUP, REQUIRED, REQUIRED).parse(config)
    defaults = [fallback[f"{_PREFIX}{_DEFAULT_GROUP}.{key}"] for key in ("replication.factor", "partitions")]
    for group in _groups(config):
        definition = _group_settings(group, *defaults)
        values = definition.parse(config)
        if _matches(topic, values, group):
            return _as_new_topic(group, values, config)
    return _as_new_topic(_DEFAULT_GROUP, fallback, config)


def _groups(config: Config) -> list[str]:
    named = [group.strip() for group in config.get(f"{_PREFIX}groups", "").split(",")]
    return [group for group in named if group and group != _DEFAULT_GROUP]


def _group_settings(group: str, replication: Any, partitions: Any) -> ConfigDef:
    def positive(what: str) -> Any:
        def check(value: int) -> str | None:
            good = value == BROKER_DEFAULT or value >= 1
            return None if good else f"{what} must be positive, or -1 to use the broker's default"

        return check

    name = f"{_PREFIX}{group}."
    return ConfigDef(
        (
            Setting(f"{name}include", Type.LIST, [], "Patterns of topic names.", check=_are_patterns),
            Setting(f"{name}exclude", Type.LIST, [], "Patterns of topic names.", check=_are_patterns),
            Setting(
                f"{name}replication.factor",
                Type.INT,
                replication,
                "Copies of each partition.",
                check=positive("Replication factor"),
            ),
            Setting(
                f"{name}partitions",
                Type.INT,
                partitions,
                "Partitions.",
                check=positive("Number of partitions"),
            ),
        )
    )


def _are_patterns(patterns: Sequence[str]) -> str | None:
    for pattern in patterns:
        if reason := pattern_problem(pattern):
            return f"Syntax error in regular expression: {reason}"
    return None


def _matches(topic: str, values: Mapping[str, Any], group: str) -> bool:
    included, excluded = (values[f"{_PREFIX}{group}.{key}"] for key in ("include", "exclude"))
    if any(java_pattern(pattern).fullmatch(topic) for pattern in excluded):
        return False
    return any(java_pattern(pattern).fullmatch(topic) for pattern in included)


def _as_new_topic(group: str, values: Mapping[str, Any], config: Config) -> NewTopic:
    name = f"{_PREFIX}{group}."
    others = {key: value for key, value in subset(config, name).items() if key not in _GROUP_KEYS}
    return NewTopic(values[f"{name}partitions"], values[f"{name}replication.factor"], others)


def source_problems(config: Config, worker: Config, cannot_be_exactly_once: str | None) -> list[Problem]:
    """What a source connector asks for that worker or connector cannot do."""
    found = []
    if config.get("exactly.once.support", "").strip().lower() == "required" and "group.id" in worker:
        key = "exactly.once.support"
        if worker.get("exactly.once.source.support", "").strip().lower() != "enabled":
            found.append(Problem(key, "This worker does not have exactly-once source support enabled."))
        if cannot_be_exactly_once:
            found.append(Problem(key, cannot_be_exactly_once))
    if config.get("transaction.boundary", "").strip().lower() == "connector" and "group.id" in worker:
        found.append(
            Problem(
                "transaction.boundary",
                "The connector does not support connector-defined transaction boundaries with the given "
                "configuration. Please reconfigure it to use a different transaction boundary definition.",
            )
        )
    return found
