"""The settings that every connector has, whatever its class (Kafka Connect's own, and ours).

The control plane validates with them, the data plane reads them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type

CONVERTER_KINDS: Final = ("key", "value", "header")

_CONVERTER_SETTINGS: Final = (
    ("schemas.enable", Type.BOOLEAN, True, "Whether each JSON value carries its schema beside the payload."),
    ("schemas.cache.size", Type.INT, 1000, "How many schemas the JSON converter remembers."),
    ("schema.content", Type.STRING, "", "The schema of all values, when they do not carry it themselves."),
    ("decimal.format", Type.STRING, "BASE64", "How decimals are written as JSON: BASE64 or NUMERIC."),
    ("replace.null.with.default", Type.BOOLEAN, True, "Whether a null becomes the default of its field."),
    ("converter.encoding", Type.STRING, "UTF-8", "The character set of the string converter."),
)


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
    try:
        re.compile(value)
    except re.error as error:
        return f"Invalid regex: {error}"
    return None


def converter_settings(kinds: tuple[str, ...] = CONVERTER_KINDS) -> ConfigDef:
    """The sub-keys of the converters, such as `value.converter.schemas.enable`."""
    return ConfigDef(
        tuple(
            Setting(f"{kind}.converter.{name}", type_, default, doc, importance="LOW", group="Converters")
            for kind in kinds
            for name, type_, default, doc in _CONVERTER_SETTINGS
        )
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

CONNECTOR: Final = (
    ConfigDef(
        (
            Setting(
                "name",
                Type.STRING,
                REQUIRED,
                "The connector's name, unique in the cluster.",
                check=_no_control_characters,
                importance="HIGH",
            ),
            Setting(
                "connector.class",
                Type.STRING,
                REQUIRED,
                "The connector's class: full name, simple name, or the simple name without 'Connector'.",
                importance="HIGH",
            ),
            Setting(
                "tasks.max",
                Type.INT,
                1,
                "How many slices run at the same time.",
                at_least=1,
                importance="HIGH",
            ),
            Setting(
                "tasks.max.enforce",
                Type.BOOLEAN,
                True,
                "Whether tasks.max is a hard limit.",
                importance="LOW",
            ),
            Setting(
                "connector.plugin.version", Type.STRING, None, "The version of the class.", importance="LOW"
            ),
            *(
                Setting(
                    f"{kind}.converter",
                    Type.CLASS,
                    None,
                    f"Turns the bytes of the record's {kind} into data; the worker's when absent.",
                    importance="LOW",
                )
                for kind in CONVERTER_KINDS
            ),
            Setting(
                "transforms",
                Type.LIST,
                [],
                "Names of the transforms, in order.",
                importance="LOW",
                group="Transforms",
            ),
            Setting(
                "predicates", Type.LIST, [], "Names of the predicates.", importance="LOW", group="Predicates"
            ),
            Setting(
                "config.action.reload",
                Type.STRING,
                "restart",
                "What to do when a config provider's value changes.",
                choices=("none", "restart"),
                importance="LOW",
            ),
            Setting(
                "errors.retry.timeout",
                Type.LONG,
                0,
                "How long a failed operation is tried again, in ms; -1 is for ever.",
                at_least=-1,
                group="Error Handling",
            ),
            Setting(
                "errors.retry.delay.max.ms",
                Type.LONG,
                60_000,
                "The longest wait between two tries.",
                at_least=0,
                group="Error Handling",
            ),
            Setting(
                "errors.tolerance",
                Type.STRING,
                "none",
                "none: the first bad record fails the connector; all: bad records go aside.",
                choices=("none", "all"),
                group="Error Handling",
            ),
            Setting("errors.log.enable", Type.BOOLEAN, False, "Log each bad record.", group="Error Handling"),
            Setting(
                "errors.log.include.messages",
                Type.BOOLEAN,
                False,
                "Log topic, partition, offset and timestamp of each bad record.",
                group="Error Handling",
            ),
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
        prefixes=(
            "transforms.",
            "predicates.",
            "producer.override.",
            "consumer.override.",
            "admin.override.",
        ),
    )
    + converter_settings()
    + RESTARTS
)

SINK_CONNECTOR: Final = CONNECTOR + ConfigDef(
    (
        Setting("topics", Type.LIST, [], "The topics to read, separated by commas.", importance="HIGH"),
        Setting(
            "topics.regex",
            Type.STRING,
            "",
            "The topics to read, as a pattern on their whole name.",
            check=_is_pattern,
            importance="HIGH",
        ),
        Setting(
            "errors.deadletterqueue.topic.name",
            Type.STRING,
            "",
            "Where bad records go under errors.tolerance=all; empty: nowhere.",
            group="Error Handling",
        ),
        Setting(
            "errors.deadletterqueue.topic.replication.factor",
            Type.INT,
            3,
            "Replicas of the dead letter queue when we create it.",
            group="Error Handling",
        ),
        Setting(
            "errors.deadletterqueue.context.headers.enable",
            Type.BOOLEAN,
            False,
            "Whether a dead letter says in its headers where it came from and why.",
            group="Error Handling",
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
    )
)
