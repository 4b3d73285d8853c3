"""A job that no worker of ours runs: environment variables configure it, `icestream job-manager` runs it.

A sink plugin that coordinates the workers of another product makes one (`SinkPlugin.job_from_environment`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icestream.api.history import Observer
from icestream.api.manager import Manager


@dataclass(frozen=True)
class EnvironmentJob:
    """What the command line has to know of such a job."""

    name: str
    """In log lines and metrics."""
    make: Callable[[Callable[[], None], Observer], Manager]
    """Gives the manager, which may be asked for again after an outage; `wake` ends the pause between two of
    its turns, the observer is told of its batches."""
    about: str = ""
    """What it coordinates, for one line of the log; never with a password."""
    warnings: Sequence[str] = ()
    # Not in the repr: these are passwords.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What no line of the log may show, and what stands there instead."""
