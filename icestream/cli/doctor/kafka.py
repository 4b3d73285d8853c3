"""What the doctor asks Kafka about a worker: whether it answers and lets us in, its version and clock, the
worker's own topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from icestream.api.errors import ConfigError, SourceUnavailable
from icestream.cli.doctor.findings import Finding, fine, notice, wrong

if TYPE_CHECKING:
    from icestream.kafka.topics import Topics

_OLDEST: Final = (3, 0)
SKEW_SECONDS: Final = 30.0
"""Clocks that differ by more make lags, freshness and signed requests wrong."""
_FEW_COPIES: Final = 2
_OFFSETS: Final = "__consumer_offsets"


def kafka_findings(worker: Mapping[str, str], seconds: float) -> Iterator[Finding]:
    """Whether Kafka answers, then all that depends on it."""
    from icestream.kafka.clients import client_settings
    from icestream.kafka.topics import Topics, reach

    settings = client_settings(worker, "admin")
    place = settings["bootstrap.servers"]
    try:
        # Before the doctor's own patience ends: the client knows why nobody answers.
        reach(settings, max(1.0, seconds / 2 - 1))
    except SourceUnavailable as error:
        advice = "check bootstrap.servers, security.protocol, the network, and that the broker runs"
        yield wrong("Kafka", f"{place} does not answer ({error})", advice)
        return
    except ConfigError as error:
        for problem in error.problems:
            advice = f"correct '{problem.key}', or ask who runs Kafka"
            yield wrong("Kafka login", f"{place}: {problem}", advice)
        return
    topics = Topics(settings)
    brokers = topics.brokers()
    yield fine("Kafka", f"{place} answers, {brokers} broker(s), cluster {topics.cluster_id()}")
    yield fine("Kafka login", _login(worker))
    yield from _version_and_clock(worker, max(1.0, seconds / 2))
    if worker.get("group.id"):
        yield from _internal_topics(worker, topics, brokers)
        group = worker["group.id"].strip()
        what, count = f"group {group}", members(settings, topics, group)
        yield fine(what, f"{count} worker(s) are in it" if count else "no worker is in it now")


def _login(worker: Mapping[str, str]) -> str:
    protocol = worker.get("admin.security.protocol") or worker.get("security.protocol") or "PLAINTEXT"
    mechanism = worker.get("admin.sasl.mechanism") or worker.get("sasl.mechanism") or "GSSAPI"
    return f"accepted ({protocol}, {mechanism})" if protocol.startswith("SASL") else f"none ({protocol})"


def _version_and_clock(worker: Mapping[str, str], seconds: float) -> Iterator[Finding]:
    from icestream.kafka.cluster_facts import cluster_facts
    from icestream.kafka.connection import connection_facts

    try:
        with cluster_facts(connection_facts(worker), seconds) as facts:
            version = facts.version()
            skew = facts.clock_skew()
    except (SourceUnavailable, ConfigError) as error:
        advice = "only a worker of a cluster needs this; standalone workers go on"
        yield notice("Kafka version", str(error), advice)
        return
    shown = ".".join(map(str, version))
    if version < _OLDEST:
        yield wrong("Kafka version", shown, "use Kafka 3.0 or newer")
    else:
        yield fine("Kafka version", shown)
    if skew is None:
        yield notice(
            "Kafka clock", "Kafka does not tell its time", "see that both machines ask a time server"
        )
    else:
        yield clock_finding("Kafka clock", skew)


def clock_finding(what: str, skew: float) -> Finding:
    fact = f"{abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if abs(skew) > SKEW_SECONDS:
        return wrong(what, fact, "set the clocks by a time server (timedatectl, chrony)")
    return fine(what, fact)


def _internal_topics(worker: Mapping[str, str], topics: Topics, brokers: int) -> Iterator[Finding]:
    from icestream.cluster.stores.internal_topics import internal_topics, wrong_with

    wanted = internal_topics(worker)
    existing = topics.describe(topic.name for topic in wanted if topic.name)
    for topic in wanted:
        key, what = f"{topic.kind}.storage.topic", f"topic {topic.name}"
        if topic.name not in existing:
            if topic.replication > brokers:
                fact = f"missing, and {topic.replication} copies are more than {brokers} broker(s) can have"
                yield wrong(what, fact, f"set '{topic.kind}.storage.replication.factor={brokers}'")
            else:
                advice = "nothing: the first worker creates it, if it may"
                yield notice(what, f"does not exist yet ('{key}')", advice)
            continue
        facts, config = existing[topic.name], topics.config(topic.name)
        problems = wrong_with(topic, facts.partitions, config)
        for problem in problems:
            fact, _, advice = str(problem.message).rpartition("; ")
            yield wrong(what, fact, advice)
        if facts.leaderless:
            fact = f"no broker answers for {len(facts.leaderless)} of its {facts.partitions} partition(s)"
            yield wrong(what, fact, "start the brokers that have them")
        elif not problems:
            yield _copies(what, key, facts.partitions, facts.copies, brokers)


def _copies(what: str, key: str, partitions: int, copies: int, brokers: int) -> Finding:
    fact = f"{partitions} partition(s), compacted, {copies} cop{'y' if copies == 1 else 'ies'} ('{key}')"
    if copies < _FEW_COPIES <= brokers:
        return notice(what, fact, "give it three copies: with its broker the connectors are lost")
    return fine(what, fact)


def members(settings: Mapping[str, str], topics: Topics, group: str) -> int:
    """How many a group has."""
    from icestream.kafka.group_members import GroupMembers

    # To ask of a group would make this topic, where nobody ever had one.
    return GroupMembers(settings, group).count() if topics.describe([_OFFSETS]) else 0
