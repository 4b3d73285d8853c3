"""Where a job runs: in a thread of the worker, or in a process of its own. Read from the configs of connector
and worker; asked by the validation of configs and by `jobs.build`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import JOB_MANAGER, memory_bytes
from icestream.api.errors import Problem

_PLACE: Final = "icestream.job.manager"
_MEMORY: Final = "icestream.job.manager.driver.memory"
_HEARTBEAT: Final = "icestream.job.manager.heartbeat.timeout.ms"

PROCESSES: Final = Setting(
    "icestream.job.manager.processes.max",
    Type.INT,
    16,
    "How many jobs of this worker may have processes of their own at the same time; the next one waits.",
    at_least=0,
    importance="LOW",
)
MOST_MEMORY: Final = Setting(
    "icestream.job.manager.driver.memory.max",
    Type.STRING,
    "8g",
    f"The largest {_MEMORY} that a connector may have.",
    check=next(one.check for one in JOB_MANAGER.settings if one.name == _MEMORY),
    importance="LOW",
)


@dataclass(frozen=True)
class JobPlace:
    has_process: bool = False
    driver_memory: str = ""
    """Empty: as the worker says."""
    heartbeat_seconds: float = 60.0


def job_place(plugin: ConnectorPlugin, config: Config, worker: Config) -> JobPlace:
    """Of a config that is valid. What the worker says holds for connectors that can have a process."""
    values = JOB_MANAGER.parse(_of_job_manager(worker) | _of_job_manager(config))
    has_process = values[_PLACE] == "process" and _hindrance(plugin, worker) is None
    return JobPlace(has_process, values[_MEMORY], values[_HEARTBEAT] / 1000)


def job_place_problems(plugin: ConnectorPlugin, config: Config, worker: Config) -> list[Problem]:
    """What the connector's own keys ask for and cannot have."""
    found: list[Problem] = []
    own = _of_job_manager(config)
    why = _hindrance(plugin, worker)
    if own.get(_PLACE, "").strip() == "process" and why is not None:
        found.append(Problem(_PLACE, f"'{_PLACE}=process' is not possible: {why}; write thread"))
    memory, most = own.get(_MEMORY, "").strip(), MOST_MEMORY.parse(worker.get(MOST_MEMORY.name, "8g"))
    is_readable = not JOB_MANAGER.problems({_MEMORY: memory})
    if memory and is_readable and memory_bytes(memory) > memory_bytes(most):
        found.append(
            Problem(
                _MEMORY,
                f"'{_MEMORY}={memory}' is more than this worker allows; set at most {most}, or raise "
                f"{MOST_MEMORY.name} in the worker's config",
            )
        )
    return found


def processes_allowed(worker: Config) -> int:
    return int(PROCESSES.parse(worker.get(PROCESSES.name, str(PROCESSES.default))))


def _of_job_manager(config: Config) -> dict[str, str]:
    return {name: config[name] for name in JOB_MANAGER.names if config.get(name, "").strip()}


def _hindrance(plugin: ConnectorPlugin, worker: Config) -> str | None:
    if not plugin.may_have_process:
        return "this connector writes to files that only one process may have open"
    if plugin.kind == "source" and "group.id" not in worker:
        return "a standalone worker keeps the offsets of all sources in one file, which only it may write"
    return None
