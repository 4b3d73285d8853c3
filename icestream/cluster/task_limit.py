"""How many tasks a connector may ask for: judged before anything is stored. Called by `connector_config`."""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.api.errors import Problem

MOST_TASKS: Final = 10_000

TASKS_LIMIT: Final = Setting(
    "icestream.tasks.limit",
    Type.INT,
    1_000,
    f"The largest tasks.max that a connector may have; at most {MOST_TASKS}.",
    at_least=1,
    check=lambda value: None if value <= MOST_TASKS else f"Value must be no more than {MOST_TASKS}",
)


def task_problems(config: Config, worker: Config) -> list[Problem]:
    limit = TASKS_LIMIT.parse(worker.get(TASKS_LIMIT.name, str(TASKS_LIMIT.default)))
    text = config.get("tasks.max", "").strip()
    if not text.isdecimal() or len(text) > 10 or int(text) <= limit:
        return []  # no number at all is told elsewhere
    return [
        Problem(
            "tasks.max",
            f"'tasks.max={text}' is more than this worker allows; set at most {limit}, or raise "
            f"{TASKS_LIMIT.name} in the worker's config",
        )
    ]
