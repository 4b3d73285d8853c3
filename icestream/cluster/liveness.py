"""Whether a worker can still do its work (`/live`), and whether it is at work (`/ready`), each with a reason
in words. The service asks with its facts; REST shows the answer to probes.

A worker that is not alive is killed by whoever asks, so only what a new process would cure counts: its event
loop, the threads of its jobs, the thread that follows the group, a JVM of its own that does not start again.
Kafka, catalogs, stores and Spark on other machines never do: an outage must not restart every worker. Nothing
that a config holds is told, since probes have no login: no names, no addresses, no errors of others.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.status import Outage

LOOP_SECONDS: Final = 30.0
"""Its requests are answered in threads; the loop itself never has a reason to stop for longer."""
GROUP_SECONDS: Final = 600.0
"""Each question to Kafka ends within a minute, and each wait for jobs within half of one."""

LIFE: Final = ConfigDef(
    (
        Setting(
            "icestream.live.spark.timeout.ms",
            Type.LONG,
            300_000,
            "How long the worker's own JVM of Spark may fail to start again before /live says so.",
            importance="LOW",
            at_least=1,
        ),
        Setting(
            "icestream.live.job.timeout.ms",
            Type.LONG,
            7_200_000,
            "How long the thread of a job may show no sign of life before /live says so.",
            importance="LOW",
            at_least=1,
        ),
    )
)


@dataclass(frozen=True)
class LifeLimits:
    """Seconds; what is silent for longer is lost."""

    spark: float = 300.0
    job: float = 7200.0
    loop: float = LOOP_SECONDS
    group: float = GROUP_SECONDS


def life_limits(worker: Config) -> LifeLimits:
    values = LIFE.parse(worker)
    return LifeLimits(
        values["icestream.live.spark.timeout.ms"] / 1000, values["icestream.live.job.timeout.ms"] / 1000
    )


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, and what was seen, in a sentence."""

    name: str
    is_well: bool
    message: str


@dataclass(frozen=True)
class Checked:
    """Well if every check is."""

    checks: tuple[Check, ...]
    summary: str
    """What is said if all is well."""

    @property
    def is_well(self) -> bool:
        return all(check.is_well for check in self.checks)

    @property
    def message(self) -> str:
        return " ".join(check.message for check in self.checks if not check.is_well) or self.summary


@dataclass(frozen=True)
class LiveFacts:
    """Ages are seconds since the last sign of life; None: there is no such thing here."""

    loop_age: float | None
    group_age: float | None
    jobs: int
    stuck_jobs: int
    outage: Outage | None
    now: dt.datetime


def live(facts: LiveFacts, limits: LifeLimits) -> Checked:
    checks = [
        _beats("event loop", "The event loop of REST", facts.loop_age, limits.loop),
        _jobs(facts),
        _beats("group", "The thread that follows the group", facts.group_age, limits.group),
        _spark(facts, limits),
    ]
    return Checked(tuple(check for check in checks if check is not None), "The process can do its work.")


def _beats(name: str, what: str, age: float | None, limit: float) -> Check | None:
    if age is None:
        return None
    if age > limit:
        said = f"{what} has shown no sign of life for {age:.0f} s, longer than {limit:.0f} s."
        return Check(name, False, said)
    return Check(name, True, f"{what} moves.")


def _jobs(facts: LiveFacts) -> Check:
    if facts.stuck_jobs:
        said = f"The threads of {facts.stuck_jobs} of {facts.jobs} connector(s) are lost; the log names them."
        return Check("jobs", False, said)
    return Check("jobs", True, f"The threads of {facts.jobs} connector(s) move.")


def _spark(facts: LiveFacts, limits: LifeLimits) -> Check:
    outage = facts.outage
    if outage is None:
        return Check("spark", True, "Spark is not missed.")
    since = outage.since.isoformat(timespec="seconds")
    if not outage.is_ours:
        said = f"Spark is away since {since}, but not for want of a process of this worker's own."
        return Check("spark", True, said)
    if (facts.now - outage.since).total_seconds() <= limits.spark:
        return Check("spark", True, f"Spark is away since {since}; it is opened again.")
    said = f"Spark is away since {since} and cannot be opened again, for more than {limits.spark:.0f} s"
    return Check("spark", False, f"{said}; the log says why.")


@dataclass(frozen=True)
class ReadyFacts:
    has_configs: bool
    has_engine: bool
    """What runs the jobs is prepared."""
    has_share: bool
    is_in_touch: bool
    connectors: int
    """That are this worker's."""


def ready(facts: ReadyFacts) -> Checked:
    checks = (
        _either(
            *("configs", facts.has_configs, "The configs of the connectors are read."),
            "The configs of the connectors are not read yet: it waits for Kafka, or has just started.",
        ),
        _either(
            *("engine", facts.has_engine, "What runs the jobs is prepared."),
            "What runs the jobs is being prepared.",
        ),
        _either(
            *("group", facts.is_in_touch, "The worker is in touch with its group."),
            "The worker has lost touch with its group, or has left it while Spark is away.",
        ),
        _either(
            *("share", facts.has_share, f"The worker has its share: {facts.connectors} connector(s)."),
            "The worker has not got its share of the connectors yet.",
        ),
    )
    return Checked(checks, "The worker is at work.")


def _either(name: str, is_well: bool, well: str, otherwise: str) -> Check:
    return Check(name, is_well, well if is_well else otherwise)
