"""What is wrong with single parts of a connector config: topics, converters, versions, unknown keys.

Called by `validation`, which asks all of them; `unknown_keys` by the worker's config as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from icestream.api.config import Config, ConfigDef
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.api.errors import Findings, Problem
from icestream.api.java_regex import JavaRegexError, java_pattern
from icestream.converters.catalog import JSON, converters_for, find_converter
from icestream.plugins import Connector

UNKNOWN_KEYS: Final = "icestream.unknown.keys"
_OF_OTHERS: Final = ("io.confluent.", "io.apicurio.", "com.amazonaws.", "io.debezium.")
"""Packages of converters that exist, only not here."""


def null_problems(config: Mapping[str, str | None]) -> list[Problem]:
    message = "Null value can not be supplied as the configuration value."
    return [Problem(key, message) for key, value in config.items() if value is None]


# -- topics --


def topic_problems(config: Mapping[str, str | None]) -> list[Problem]:
    """Of a sink: its topics or a pattern, none twice, and not the topic of its own dead letters."""
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


# -- converters --


def converter_problems(given: Config, effective: Config) -> list[Problem]:
    """`effective` has the worker's converters where the config names none."""
    found: list[Problem] = []
    for kind in CONVERTER_KINDS:
        key = f"{kind}.converter"
        named = (given.get(key) if key in given else effective.get(key, "")) or ""
        found += _converter_problems(kind, key, named.strip(), is_given=key in given)
    return found


def _converter_problems(kind: str, key: str, named: str, *, is_given: bool) -> list[Problem]:
    converter = find_converter(named)
    if converter is not None and converter.serves(kind):
        return []
    if converter is not None:
        interface = "HeaderConverter" if kind == "header" else "Converter"
        reason = f"Class class {converter.class_name} does not implement the {interface} interface"
        return [Problem(key, reason)]
    if named.startswith(_OF_OTHERS):
        choices = " or ".join(converters_for(kind))
        return [Problem(key, f"'{key}={named}' is not supported by this version; use {choices}")]
    if is_given or named:
        return [
            Problem(key, f"Invalid value {named} for configuration {key}: Class {named} could not be found.")
        ]
    if kind != "value":
        return []
    return [Problem(key, f"'{key}' is set neither here nor in the worker's config; set {key}={JSON}")]


# -- versions --


def version_problems(config: Config, connector: Connector) -> list[Problem]:
    """Versions of connectors and converters that a config asks for (KIP-891): we have one of each."""
    found = []
    for key, version_key, class_name, available in _versions(config, connector):
        version = config.get(version_key)
        if version is not None and version.strip() not in available:
            message = (
                f"Plugin {class_name} not found that matches the version range [{version},{version}], "
                f"available versions: [{', '.join(available)}]"
            )
            found += [Problem(key, message), Problem(version_key, message)]
    return found


def _versions(config: Config, connector: Connector) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """The key of a class, the key of its version, the class, and the versions that there are."""
    yield "connector.class", "connector.plugin.version", connector.class_name, [connector.version]
    for kind in CONVERTER_KINDS:
        key = f"{kind}.converter"
        converter = find_converter(config.get(key, "").strip())
        if converter is not None:
            # Kafka Connect lists a class once as a converter of records and once as one of headers.
            available = [converter.version] * (converter.is_for_records + converter.is_for_headers)
            yield key, f"{key}.plugin.version", converter.class_name, available


# -- unknown keys --


def unknown_keys(
    definition: ConfigDef,
    keys: Iterable[str],
    policy: str,
    families: Mapping[str, ConfigDef] | None = None,
    workers_policy: str = "",
) -> Findings:
    """Apply `icestream.unknown.keys` (error, typos or accept) to the keys outside the definition: each is
    refused, or accepted with a warning.

    `families`: what keys below a prefix may be meant to be, by the prefix; the longest prefix counts.
    `workers_policy`: error leaves a connector no choice of its own.
    """
    is_workers = workers_policy == "error"
    policy = "error" if is_workers else policy
    way_out = "" if is_workers else f", or set {UNKNOWN_KEYS}=accept"
    problems: list[Problem] = []
    warnings: list[str] = []
    suggestions: dict[str, str] = {}
    for key, close in definition.unknown(keys).items():
        suggestion = _suggestion(key, close, families or {})
        if suggestion:
            suggestions[key] = suggestion
        hint = f"; did you mean '{suggestion}'?" if suggestion else ""
        if policy == "error" or (policy == "typos" and suggestion):
            remedy = hint or f"; remove it{way_out}"
            problems.append(Problem(key, f"Unknown configuration '{key}'{remedy}"))
        else:
            warnings.append(f"'{key}' is not a known configuration and has no effect{hint}")
    return Findings(tuple(problems), tuple(warnings), suggestions)


def _suggestion(key: str, close: str | None, families: Mapping[str, ConfigDef]) -> str | None:
    prefix = max((one for one in families if key.startswith(one)), key=len, default=None)
    if prefix is None:
        return close
    short = key.removeprefix(prefix)
    meant = families[prefix].unknown([short]).get(short)
    return prefix + meant if meant else None
