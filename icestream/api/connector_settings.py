"""The settings that every connector has, whatever its class (Kafka Connect's own, and ours).

The control plane validates with them, the data plane reads them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.java_regex import pattern_problem

CONVERTER_KINDS: Final = ("key", "value", "header")


def _no_control_characters(value: str) -> str | None:
    if not value:
        return "String may not be empty"
    found = [str(ord(char)) for char in value if ord(char) < 32 or 127 <= ord(char) < 160]
    if found:
        return "String may not contain control sequences but had the following ASCII chars: " + ", ".join(
            found
        )
    return None


def _is_pattern(value: Any) -> str | None:
    reason = pattern_problem(value)
    return f"Invalid regex: {reason}" if reason else None


def _aliases(key: str, names: list[str] | None) -> str | None:
    if names is None:
        return f"Invalid value null for configuration {key}: entry must be non null"
    if len(set(names)) < len(names):
        return f"Invalid value [{', '.join(names)}] for configuration {key}: Duplicate alias provided."
    return None


def _converter_choice(kind: str, order: int) -> tuple[Setting, Setting]:
    title = kind.capitalize()
    return (
        Setting(
            f"{kind}.converter",
            Type.CLASS,
            None,
            f"Turns the bytes of the record's {kind} into data; the worker's when absent.",
            importance="LOW",
            group="Common",
            order=order,
            width="SHORT",
            display_name=f"{title} converter class",
        ),
        Setting(
            f"{kind}.converter.plugin.version",
            Type.STRING,
            None,
            f"The version of {kind}.converter.",
            importance="LOW",
            group="Common",
            order=order + 1,
            width="SHORT",
            display_name=f"{title} converter version",
        ),
    )


FRAMEWORK: Final = ConfigDef(
    (
        Setting(
            "name",
            Type.STRING,
            REQUIRED,
            "The connector's name, unique in the cluster.",
            check=_no_control_characters,
            importance="HIGH",
            group="Common",
            order=1,
            width="MEDIUM",
            display_name="Connector name",
        ),
        Setting(
            "connector.class",
            Type.STRING,
            REQUIRED,
            "The connector's class: full name, simple name, or the simple name without 'Connector'.",
            importance="HIGH",
            group="Common",
            order=2,
            width="LONG",
            display_name="Connector class",
        ),
        Setting(
            "connector.plugin.version",
            Type.STRING,
            None,
            "The version of the class.",
            group="Common",
            order=3,
            width="MEDIUM",
            display_name="Connector version",
        ),
        Setting(
            "tasks.max",
            Type.INT,
            1,
            "How many slices run at the same time.",
            at_least=1,
            importance="HIGH",
            group="Common",
            order=4,
            width="SHORT",
            display_name="Tasks max",
        ),
        Setting(
            "tasks.max.enforce",
            Type.BOOLEAN,
            True,
            "Whether tasks.max is a hard limit.",
            importance="LOW",
            group="Common",
            order=5,
            width="SHORT",
            display_name="Enforce tasks max",
        ),
        *_converter_choice("key", 6),
        *_converter_choice("value", 8),
        *_converter_choice("header", 10),
        Setting(
            "transforms",
            Type.LIST,
            [],
            "Names of the transforms, in order.",
            rule=_aliases,
            importance="LOW",
            group="Transforms",
            order=12,
            width="LONG",
            display_name="Transforms",
        ),
        Setting(
            "predicates",
            Type.LIST,
            [],
            "Names of the predicates.",
            rule=_aliases,
            importance="LOW",
            group="Predicates",
            order=13,
            width="LONG",
            display_name="Predicates",
        ),
        Setting(
            "config.action.reload",
            Type.STRING,
            "restart",
            "What to do when a config provider's value changes.",
            choices=("none", "restart"),
            importance="LOW",
            group="Common",
            order=14,
            width="MEDIUM",
            display_name="Reload Action",
        ),
        Setting(
            "errors.retry.timeout",
            Type.LONG,
            0,
            "How long a failed operation is tried again, in ms; -1 is for ever.",
            group="Error Handling",
            order=1,
            width="MEDIUM",
            display_name="Retry Timeout for Errors",
        ),
        Setting(
            "errors.retry.delay.max.ms",
            Type.LONG,
            60_000,
            "The longest wait between two tries.",
            group="Error Handling",
            order=2,
            width="MEDIUM",
            display_name="Maximum Delay Between Retries for Errors",
        ),
        Setting(
            "errors.tolerance",
            Type.STRING,
            "none",
            "none: the first bad record fails the connector; all: bad records go aside.",
            choices=("none", "all"),
            group="Error Handling",
            order=3,
            width="SHORT",
            display_name="Error Tolerance",
        ),
        Setting(
            "errors.log.enable",
            Type.BOOLEAN,
            False,
            "Log each bad record.",
            group="Error Handling",
            order=4,
            width="SHORT",
            display_name="Log Errors",
        ),
        Setting(
            "errors.log.include.messages",
            Type.BOOLEAN,
            False,
            "Log topic, partition, offset and timestamp of each bad record.",
            group="Error Handling",
            order=5,
            width="SHORT",
            display_name="Log Error Details",
        ),
    ),
    prefixes=(
        "producer.override.",
        "consumer.override.",
        "admin.override.",
    ),
)

RESTARTS: Final = ConfigDef(
    (
        Setting(
            "icestream.restart.policy",
            Type.STRING,
            "never",
            "never: a failed connector waits for a person; on-failure: it starts again by itself.",
            choices=("never", "on-failure"),
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.attempts",
            Type.INT,
            10,
            "How often a connector starts again before it waits for a person; success begins the count anew.",
            at_least=1,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.delay.ms",
            Type.LONG,
            1_000,
            "The wait before the first start; it doubles from start to start.",
            at_least=0,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.delay.max.ms",
            Type.LONG,
            300_000,
            "The longest wait between two starts.",
            at_least=0,
            importance="LOW",
            group="Icestream",
        ),
    )
)
"""Of connectors that start again by themselves after a failure."""

RETRIES: Final = ConfigDef(
    (
        Setting(
            "icestream.retry.max",
            Type.INT,
            -1,
            "How often in a row a destination that does not answer is asked again before the connector "
            "fails; -1: for as long as it takes.",
            at_least=-1,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.retry.backoff.ms",
            Type.LONG,
            200,
            "The wait after the first failure; it doubles from failure to failure, with jitter.",
            at_least=1,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.retry.backoff.max.ms",
            Type.LONG,
            15_000,
            "The longest wait between two attempts.",
            at_least=1,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.circuit.failures",
            Type.INT,
            5,
            "So many failures in a row of one destination open its circuit breaker; 0: never.",
            at_least=0,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.circuit.open.ms",
            Type.LONG,
            15_000,
            "How long a circuit breaker stays open before one connector tries again.",
            at_least=1,
            importance="LOW",
            group="Icestream",
        ),
    )
)
"""Of connectors, and of workers for all connectors that say nothing else."""

JOB_MANAGER: Final = ConfigDef(
    (
        Setting(
            "icestream.job.manager",
            Type.STRING,
            "thread",
            "Where the job runs: thread, in the worker; process, in a process of its own with a Spark of its "
            "own.",
            check=lambda place: _place_problem(place),
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.job.manager.driver.memory",
            Type.STRING,
            "",
            "Memory of the Spark driver of a job in a process of its own, such as 2g; empty: as the worker's "
            "'spark.driver.memory'.",
            check=lambda memory: _memory_problem(memory),
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.job.manager.heartbeat.timeout.ms",
            Type.LONG,
            60_000,
            "A process of a job that says nothing for so long is killed, and another one is started.",
            at_least=1_000,
            importance="LOW",
            group="Icestream",
        ),
    )
)
"""Of connectors, and of workers for all connectors that say nothing else."""
_PLACES: Final = ("thread", "process")


def _place_problem(place: str) -> str | None:
    if place == "kubernetes":
        return "a pod for each job is made by the operator, which this version does not have; write process"
    return None if place in _PLACES else f"String must be one of: {', '.join(_PLACES)}"


def _memory_problem(memory: str) -> str | None:
    is_known = not memory or _MEMORY.fullmatch(memory)
    return None if is_known else "write a number and its unit, such as 512m or 2g"


def memory_bytes(memory: str) -> int:
    """What `2g` is in bytes."""
    number, unit = memory[:-1], memory[-1].lower()
    return int(number) << 10 * (1 + "kmgt".index(unit))


_MEMORY: Final = re.compile(r"[0-9]{1,9}[kKmMgGtT]")

CONNECTOR: Final = (
    FRAMEWORK
    + ConfigDef(
        (
            Setting(
                "icestream.unknown.keys",
                Type.STRING,
                "typos",
                "Keys that nobody knows. error: refused; typos: refused when they look like a known key; "
                "accept: a warning.",
                choices=("error", "typos", "accept"),
                importance="LOW",
                group="Icestream",
            ),
        ),
    )
    + RESTARTS
    + RETRIES
    + JOB_MANAGER
)

NEW_COLUMNS: Final = Setting(
    "icestream.new.columns.max",
    Type.INT,
    1_000,
    "How many columns one batch may add to a table; records that need more are rejected.",
    at_least=0,
    group="Icestream",
)
NEW_NAMES: Final = Setting(
    "icestream.new.columns.name.length.max",
    Type.INT,
    255,
    "How long the name of a new column may be; records with longer ones are rejected.",
    at_least=1,
    group="Icestream",
)

SINK_CONNECTOR: Final = CONNECTOR + ConfigDef(
    (
        Setting(
            "topics",
            Type.LIST,
            [],
            "The topics to read, separated by commas.",
            importance="HIGH",
            group="Common",
            order=4,
            width="LONG",
            display_name="Topics",
        ),
        Setting(
            "topics.regex",
            Type.STRING,
            "",
            "The topics to read, as a pattern on their whole name.",
            check=_is_pattern,
            importance="HIGH",
            group="Common",
            order=4,
            width="LONG",
            display_name="Topics regex",
        ),
        Setting(
            "errors.deadletterqueue.topic.name",
            Type.STRING,
            "",
            "Where bad records go under errors.tolerance=all; empty: nowhere.",
            group="Error Handling",
            order=6,
            width="MEDIUM",
            display_name="Dead Letter Queue Topic Name",
        ),
        Setting(
            "errors.deadletterqueue.topic.replication.factor",
            Type.SHORT,
            3,
            "Replicas of the dead letter queue when we create it.",
            group="Error Handling",
            order=7,
            width="MEDIUM",
            display_name="Dead Letter Queue Topic Replication Factor",
        ),
        Setting(
            "errors.deadletterqueue.context.headers.enable",
            Type.BOOLEAN,
            False,
            "Whether a dead letter says in its headers where it came from and why.",
            group="Error Handling",
            order=8,
            width="MEDIUM",
            display_name="Enable Error Context Headers",
        ),
        Setting(
            "icestream.commit.rows",
            Type.LONG,
            2_000_000,
            "A batch starts early when this many records wait.",
            at_least=1,
            group="Icestream",
        ),
        Setting(
            "icestream.commit.bytes",
            Type.LONG,
            2**30,
            "A batch starts early when this many bytes wait.",
            at_least=1,
            group="Icestream",
        ),
        NEW_COLUMNS,
        NEW_NAMES,
    )
)
