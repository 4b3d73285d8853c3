"""What annotations of a KafkaConnector ask for, once: restarts and offsets. Pure; for the reconciliation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FLAGS: Final = ("includeTasks", "onlyFailed")
_OFFSET_VERBS: Final = ("list", "alter", "reset")
_MOST_TASKS: Final = 2**31


class InvalidRequest(Exception):
    """The value of an annotation has no meaning; the message says which ones have."""


@dataclass(frozen=True)
class Restart:
    include_tasks: bool = False
    only_failed: bool = False


def restart_from(value: str) -> Restart | None:
    """None if nothing is asked for."""
    words = [word.strip() for word in value.split(",")]
    if words == ["false"]:
        return None
    if words == ["true"]:
        return Restart()
    if not set(words) <= set(_FLAGS) or len(set(words)) != len(words):
        raise InvalidRequest(
            f"Invalid annotation format: '{_short(value)}' is neither true nor one or both of "
            f"{', '.join(_FLAGS)}; correct it"
        )
    return Restart("includeTasks" in words, "onlyFailed" in words)


def task_from(value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) < 11 and int(value) < _MOST_TASKS:
        return int(value)
    raise InvalidRequest(
        f"Invalid annotation format: '{_short(value)}' is not the number of a task; write one such as 0"
    )


def offsets_verb_from(value: str) -> str:
    if value in _OFFSET_VERBS:
        return value
    raise InvalidRequest(
        f"Invalid annotation format: '{_short(value)}' is not one of {', '.join(_OFFSET_VERBS)}; correct it"
    )


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:60]}…"
