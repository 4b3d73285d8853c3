"""What the doctor finds of one connector: its config as `validate` sees it, its topics and group, and all
that it points at, by the checks of `validate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.errors import ConfigError, Problem
from icestream.api.sink import SinkPlugin
from icestream.cli.doctor.findings import Finding, Look, fine, notice, wrong
from icestream.cli.doctor.kafka import members

if TYPE_CHECKING:
    from icestream.api.connector import ConnectorPlugin, Probe
    from icestream.cluster.configs.providers import Providers

_NEXT = "correct this key; `icestream plugins` tells what it may be"


def connector_looks(
    name: str, config: Mapping[str, str], worker: Mapping[str, str], providers: Providers, seconds: float
) -> tuple[list[Finding], list[Look], dict[str, str]]:
    """What the config alone tells, what is to be looked at besides, and the secrets that it holds."""
    from icestream.cluster.configs.secrets import secrets_of
    from icestream.cluster.configs.validation import Validator
    from icestream.jobs.probes import connector_probes

    what = f"connector {name}"
    validator = Validator(worker, None, providers.resolved)
    try:
        validation = validator.validated(config, deep=False)
    except ConfigError as error:
        return [*_problems(what, error.problems)], [], {}
    found = [*_problems(what, validation.problems)]
    found += [notice(what, warning, "see that this is meant") for warning in validation.warnings]
    effective = validator.effective(config)
    resolved = providers.resolved(effective)
    plugin = validation.connector.plugin
    if validation.problems:
        looks = _looks_despite(validation.problems, name, plugin, resolved, worker)
        return found, looks, secrets_of(effective, resolved)
    found.append(fine(what, f"the config is valid ({validation.connector.simple_name})"))
    looks = []
    if isinstance(plugin, SinkPlugin) and plugin.probes_kafka:
        group = plugin.options(resolved).group or f"connect-{name}"
        looks.append(Look(f"{what}, topics", lambda: _topics(group, resolved, worker)))
    try:
        probes = connector_probes(resolved, worker, seconds)
    except ConfigError as error:
        return [*found, *_problems(what, error.problems)], looks, secrets_of(effective, resolved)
    looks += [Look(probe.what, partial(_asked, probe, seconds)) for probe in probes]
    return found, looks, secrets_of(effective, resolved)


def _looks_despite(
    problems: Sequence[Problem],
    name: str,
    plugin: ConnectorPlugin,
    config: Mapping[str, str],
    worker: Mapping[str, str],
) -> list[Look]:
    """The topics of a sink, which no typo elsewhere makes others. All else waits for a config that is right:
    one that is refused may name what must not be opened, and so may its own settings of Kafka's clients."""
    wrong_keys = {problem.key for problem in problems}
    has_kafka = bool(worker.get("bootstrap.servers", "").strip())
    is_sink = isinstance(plugin, SinkPlugin) and plugin.probes_kafka
    if not is_sink or not has_kafka or any(".override." in key for key in wrong_keys):
        return []
    right = {key: value for key, value in config.items() if key not in wrong_keys}
    try:
        SINK_CONNECTOR.parse(right)
    except ConfigError:
        return []
    return [Look(f"connector {name}, topics", lambda: _topics(None, right, worker))]


def _asked(probe: Probe, seconds: float) -> Iterator[Finding]:
    from icestream.jobs.probes import answers

    what = probe.what
    problems = list(answers([probe], max(1.0, seconds - 0.5)))
    yield from _problems(what, problems)
    if not problems:
        yield fine(what, "answers, and does what the connector needs")


def _problems(what: str, problems: Iterable[Problem]) -> Iterator[Finding]:
    for problem in problems:
        fact, semicolon, advice = str(problem).rstrip(".").rpartition("; ")
        yield wrong(what, fact if semicolon else advice, advice if semicolon else _NEXT)


def _topics(group: str | None, config: Mapping[str, str], worker: Mapping[str, str]) -> Iterator[Finding]:
    """Of a sink; without its group if nobody knows it."""
    from icestream.api.config import subset
    from icestream.kafka.clients import client_settings
    from icestream.kafka.topics import Topics

    settings = client_settings(worker, "admin", subset(config, "admin.override."))
    topics, sink = Topics(settings), SINK_CONNECTOR.parse(config)
    if pattern := sink["topics.regex"]:
        matching = topics.matching(pattern)
        if matching:
            yield fine("topics.regex", f"matches {len(matching)} topic(s)")
        else:
            advice = "create one, or correct the pattern: it must match the whole name"
            yield notice("topics.regex", f"'{pattern}' matches no topic", advice)
    letters = sink["errors.deadletterqueue.topic.name"]
    wanted = [*sink["topics"], *([letters] if letters else [])]
    existing = topics.describe(wanted)
    for topic in wanted:
        what = f"topic {topic}"
        if topic not in existing and topic == letters:
            advice = "nothing: the connector creates it, if it may"
            yield notice(what, "does not exist yet (dead letters)", advice)
        elif topic not in existing:
            yield notice(what, "does not exist", "create it, or correct 'topics': the connector waits for it")
        elif existing[topic].leaderless:
            fact = f"no broker answers for {len(existing[topic].leaderless)} of its partitions"
            yield wrong(what, fact, "start the brokers that have them")
        else:
            yield fine(what, f"{existing[topic].partitions} partition(s)")
    if group is None:
        return
    if count := members(settings, topics, group):
        advice = "stop the other: Icestream's connectors have no members there, so another program reads"
        yield notice(f"group {group}", f"{count} member(s)", advice)
    else:
        yield fine(f"group {group}", "no other program reads with it")
