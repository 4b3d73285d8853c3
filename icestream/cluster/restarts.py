"""Failed connectors that start again by themselves (`icestream.restart.policy=on-failure`). Pure: no clock.

Called by the supervisor at every turn, for each connector of this worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.restart_settings import RESTARTS
from icestream.api.status import JobStatus, State

_STEADY_SECONDS: Final = 600.0
"""A job that has run for so long has recovered, even if no record came."""


@dataclass(frozen=True)
class Policy:
    is_on: bool
    attempts: int
    delay: float
    longest_delay: float

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Policy:
        values = RESTARTS.parse(config)
        return cls(
            values["icestream.restart.policy"] == "on-failure",
            values["icestream.restart.attempts"],
            values["icestream.restart.delay.ms"] / 1000,
            values["icestream.restart.delay.max.ms"] / 1000,
        )

    def wait(self, attempt: int) -> float:
        return min(self.longest_delay, self.delay * 2.0 ** min(attempt - 1, 30))


NEVER: Final = Policy(is_on=False, attempts=0, delay=0.0, longest_delay=0.0)


@dataclass(frozen=True)
class Recovery:
    """Where a connector is on its way back; attempt 0 is: nothing has happened."""

    attempt: int = 0
    due: float | None = None
    """When the next start comes."""
    since: float = 0.0
    """When the last start was."""


NO_RECOVERY: Final = Recovery()


def next_step(policy: Policy, recovery: Recovery, job: JobStatus, now: float) -> tuple[Recovery, bool]:
    """The recovery from now on, and whether the job must start again this moment."""
    if not policy.is_on:
        return NO_RECOVERY, False
    if job.state is State.FAILED:
        return _after_failure(policy, recovery, now)
    if recovery.attempt == 0:
        return recovery, False
    has_worked = job.state is State.RUNNING and job.progress.batches > 0
    if has_worked or now - recovery.since > _STEADY_SECONDS:
        return NO_RECOVERY, False
    return recovery, False


def _after_failure(policy: Policy, recovery: Recovery, now: float) -> tuple[Recovery, bool]:
    if recovery.due is None:
        if recovery.attempt >= policy.attempts:
            return recovery, False
        attempt = recovery.attempt + 1
        return Recovery(attempt, now + policy.wait(attempt), recovery.since), False
    if now < recovery.due:
        return recovery, False
    return Recovery(recovery.attempt, None, now), True
