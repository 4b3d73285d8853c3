"""How much one config may ask for: its size, its names, its tasks; and texts that no path or address can be.

Called by `validation`, the sizes before anything else: what comes later may take time that grows with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config, Setting, Type
from icestream.api.errors import ConfigError, Problem

MOST_BYTES: Final = 2**20
"""A config is one record in Kafka, which takes a megabyte."""
_MOST_BYTES_OF_TASKS: Final = 64 * 2**20
"""Each task has a config of its own, and `/connectors/NAME/tasks` shows them all."""
_MOST_NAMED: Final = {"transforms": 100, "predicates": 100, "topics": 20_000}
"""Each name of these lists has settings of its own, or is asked for; more than anybody has is an attack."""
_PLACES: Final = ("uri", "url", "endpoint", "warehouse", "location", "path", "file", "filename", "directory")
"""Last words of the keys whose values are paths or addresses."""
READ_TWO_WAYS: Final = re.compile(r"[^/]*//[^/?#]*[\\\s\x00-\x1f\x7f]")
"""To some readers a host ends there, and to others it does not: what is allowed must be what is reached."""
_WITH_PORTS: Final = ("http", "https", "postgresql")

MOST_TASKS: Final = 10_000
TASKS_LIMIT: Final = Setting(
    "icestream.tasks.limit",
    Type.INT,
    1_000,
    f"The largest tasks.max that a connector may have; at most {MOST_TASKS}.",
    at_least=1,
    check=lambda value: None if value <= MOST_TASKS else f"Value must be no more than {MOST_TASKS}",
)


def refuse_too_much(config: Mapping[str, str | None]) -> None:
    """Raise ConfigError for a config that nobody could store, or with more classes than anybody uses."""
    size = _size(config)
    if size > MOST_BYTES:
        raise ConfigError(
            [
                Problem(
                    "name",
                    f"The config has {size} bytes; at most {MOST_BYTES} are possible, so make it smaller",
                )
            ]
        )
    refuse_too_many(config, _MOST_NAMED)


def _size(config: Mapping[str, str | None]) -> int:
    return sum(len(key.encode()) + len((value or "").encode()) for key, value in config.items())


def refuse_too_many(config: Mapping[str, str | None], limits: Mapping[str, int]) -> None:
    """Raise ConfigError for a list of names that is too long; `limits` has the most of each key."""
    for key, most in limits.items():
        count = (config.get(key) or "").count(",") + 1
        if count > most:
            raise ConfigError([Problem(key, f"'{key}' names {count}; at most {most} are possible")])


def task_problems(config: Config, worker: Config) -> list[Problem]:
    """More tasks than the worker allows."""
    limit = TASKS_LIMIT.parse(worker.get(TASKS_LIMIT.name, str(TASKS_LIMIT.default)))
    text = config.get("tasks.max", "").strip()
    if not text.isdecimal() or len(text) > 10:
        return []  # told elsewhere
    size = _size(config)
    if int(text) <= limit and int(text) * size > _MOST_BYTES_OF_TASKS:
        return [
            Problem(
                "tasks.max",
                f"'tasks.max={text}' makes as many copies of this config of {size} bytes, more than "
                f"{_MOST_BYTES_OF_TASKS} bytes; set at most {_MOST_BYTES_OF_TASKS // size}",
            )
        ]
    if int(text) <= limit:
        return []
    return [
        Problem(
            "tasks.max",
            f"'tasks.max={text}' is more than this worker allows; set at most {limit}, or raise "
            f"{TASKS_LIMIT.name} in the worker's config",
        )
    ]


def place_problems(config: Config) -> list[Problem]:
    """Values that name a place which cannot be, whatever the connector."""
    found = ((key, _reason(value)) for key, value in config.items() if key.rpartition(".")[2] in _PLACES)
    return [Problem(key, f"'{key}' {reason}") for key, reason in found if reason]


def _reason(value: str) -> str | None:
    if "\0" in value:
        return "has a NUL character, which no path and no address can have; remove it"
    for address in value.split(","):
        if READ_TWO_WAYS.match(address.strip()):
            return "has a backslash or a blank before or in its host, which no address can have; remove it"
        try:
            parts = urlsplit(address.strip().removeprefix("jdbc:"))
            # Elsewhere a colon need not come before a port: buckets have names such as arn:aws:s3:….
            _ = parts.port if parts.scheme in _WITH_PORTS else None
        except ValueError as error:
            # Never the value: it may hold a password.
            return f"is not an address ({_first_words(error)}); write it as http://host:port/path"
    return None


def _first_words(error: ValueError) -> str:
    """Without what the address holds, which some of these errors repeat."""
    return "the port is no number up to 65535" if "ort" in str(error) else "the brackets do not match"
