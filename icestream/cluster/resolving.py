"""Placeholders of config providers: resolved when a job starts, hidden in what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icestream.api.config import Config
from icestream.api.status import JobStarter, JobStatus, RunningJob


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """The text with the placeholder for each secret."""
    for secret, placeholder in secrets.items():
        text = text.replace(secret, placeholder)
    return text


def secrets_of(given: Config, resolved: Config) -> dict[str, str]:
    """What the providers put in, and the placeholder for it."""
    return {value: given[key] for key, value in resolved.items() if value and value != given.get(key, value)}


@dataclass(frozen=True)
class ResolvingStarter:
    """A `JobStarter` that asks the providers at every start, so that a restart sees new values."""

    starter: JobStarter
    resolve: Callable[[Config], dict[str, str]]

    def __call__(self, name: str, config: Mapping[str, str], *, paused: bool) -> RunningJob:
        resolved = self.resolve(config)
        job = self.starter(name, resolved, paused=paused)
        secrets = secrets_of(config, resolved)
        return _DiscreetJob(job, secrets) if secrets else job

    def close(self) -> None:
        close = getattr(self.starter, "close", None)
        if close is not None:
            close()


@dataclass(frozen=True)
class _DiscreetJob:
    job: RunningJob
    secrets: Mapping[str, str]

    def pause(self) -> None:
        self.job.pause()

    def resume(self) -> None:
        self.job.resume()

    def stop(self) -> None:
        self.job.stop()

    def status(self) -> JobStatus:
        status = self.job.status()
        warnings = tuple(hidden(warning, self.secrets) for warning in status.progress.warnings)
        trace = hidden(status.trace, self.secrets) if status.trace else None
        return replace(status, trace=trace, progress=replace(status.progress, warnings=warnings))
