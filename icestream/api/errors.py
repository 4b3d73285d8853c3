"""Every exception that we raise. A class exists only where some code decides differently on it.

IcestreamError
├── ConfigError(problems)        the config is wrong: names the key, the value, the remedy
│   └── UnknownConnectorClass    no class, or one that we do not have: nothing else can be checked
├── NotFoundError                no such connector, task, plugin
├── AlreadyExistsError           a connector of this name exists
├── ConfigChanged(now, version)  somebody else has changed the config since it was read
├── NotReadyError                try again: the worker is busy with this connector
├── NotLeader(url)               another worker must answer this; REST asks it
├── BadOffsets                   offsets that a request asks for make no sense, or come at the wrong time
├── BadFilter                    a filter of dead letters that cannot be understood
├── ImageArchiveError            an archive of container images is broken, or not what was asked for
├── RegistryRefused              a container registry answers, and refuses: a login, a name, a manifest
├── PreconditionError            the machine lacks something (Java, a port, disk, network): says what to do
│   └── WorkerUnreachable        no worker answers at the address; the command line has an exit code for it
├── RetriableError               the loop tries again; shown only if it persists
│   ├── SourceUnavailable        Kafka does not answer
│   │   └── OriginUnavailable    the database that a source connector reads, or the like, does not answer
│   ├── SinkUnavailable          catalog, object store or database does not answer
│   │   ├── SinkRefused          it answers, and refuses: a login, a permission, a name that it does not know
│   │   └── EngineUnavailable    Spark or the job's own process is away: no fault of the destination
│   ├── RegistryUnavailable      a container registry does not answer, or not for now
│   ├── CommitConflict           the commit did not land: read the table again, plan again
│   │   └── RowsRefused          because of some rows, which the target's next plan has fail
│   ├── CommitUnknown            the commit may have landed: nothing is deleted, the table is asked again
│   └── Cancelled                the batch was given up for a pause or a stop; nothing of it is visible
└── FatalError                   the task fails, its trace is in the status, it waits for a person
    ├── Fenced                   another manager of this job is alive; this one stops
    ├── SourceRecreated          the topic or the cluster is not the one the table knows
    ├── LostOffsets              the job has committed before, but the table no longer says how far
    └── RecordRejected           a bad record and errors.tolerance=none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one key of a config."""

    key: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Findings:
    """What there is to say about a config: what is wrong with it, what has no effect, what was meant."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    suggestions: Mapping[str, str] = field(default_factory=dict)
    """The known key that an unknown one looks like."""

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            (*self.problems, *other.problems),
            (*self.warnings, *other.warnings),
            {**self.suggestions, **other.suggestions},
        )


class IcestreamError(Exception):
    """Base of all."""


class ConfigError(IcestreamError):
    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class UnknownConnectorClass(ConfigError):
    pass


class NotFoundError(IcestreamError):
    pass


class AlreadyExistsError(IcestreamError):
    pass


class ConfigChanged(IcestreamError):
    def __init__(self, message: str, now: Mapping[str, str], version: str) -> None:
        super().__init__(message)
        self.now = now
        """The config as it is stored, secrets included: whoever shows it hides them."""
        self.version = version


class NotReadyError(IcestreamError):
    pass


class NotLeader(IcestreamError):
    def __init__(self, url: str) -> None:
        super().__init__(f"this worker does not lead the group; ask {url}")
        self.url = url


class BadOffsets(IcestreamError):
    pass


class BadFilter(IcestreamError):
    pass


class ImageArchiveError(IcestreamError):
    pass


class RegistryRefused(IcestreamError):
    pass


class PreconditionError(IcestreamError):
    pass


class WorkerUnreachable(PreconditionError):
    pass


class RetriableError(IcestreamError):
    pass


class SourceUnavailable(RetriableError):
    pass


class OriginUnavailable(SourceUnavailable):
    pass


class SinkUnavailable(RetriableError):
    pass


class SinkRefused(SinkUnavailable):
    pass


class EngineUnavailable(SinkUnavailable):
    pass


class RegistryUnavailable(RetriableError):
    pass


class CommitConflict(RetriableError):
    def __init__(self, message: str, *, certain: bool = True) -> None:
        super().__init__(message)
        self.certain = certain
        """False: a commit of unknown outcome was not found, but could still arrive."""


class RowsRefused(CommitConflict):
    pass


class CommitUnknown(RetriableError):
    pass


class Cancelled(RetriableError):
    pass


class FatalError(IcestreamError):
    pass


class Fenced(FatalError):
    pass


class SourceRecreated(FatalError):
    pass


class LostOffsets(FatalError):
    pass


class RecordRejected(FatalError):
    pass


def retriable_kind(error: Exception) -> type[RetriableError] | None:
    """The class of this page that the error is of, if it may be tried again: it is known in every process."""
    own = [kind for kind in type(error).__mro__ if kind.__module__ == __name__]
    return own[0] if own and issubclass(own[0], RetriableError) else None


def is_destination_outage(error: Exception) -> bool:
    """Whether the system at the other end of the connector is away, slow or overloaded: its circuit breaker
    counts this, and a new attempt may do better. What it refuses would be refused to the others' hurt."""
    return isinstance(error, SinkUnavailable | CommitUnknown | OriginUnavailable) and not isinstance(
        error, SinkRefused | EngineUnavailable
    )
