"""The settings of FileStreamSource, Kafka's smallest source. Found by name through `icestream.plugins`."""

from __future__ import annotations

from typing import Final

from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type
from icestream.api.errors import Problem


def _not_empty(value: str) -> str | None:
    return None if value else "String must be non-empty"


FILE_STREAM_SOURCE: Final = ConfigDef(
    (
        Setting("file", Type.STRING, None, "The file to read; otherwise standard input.", importance="HIGH"),
        Setting(
            "topic",
            Type.STRING,
            REQUIRED,
            "The topic that gets the lines.",
            check=_not_empty,
            importance="HIGH",
        ),
        Setting("batch.size", Type.INT, 2000, "How many lines are read at a time.", importance="LOW"),
    )
)


def definition(config: Config) -> ConfigDef:
    return FILE_STREAM_SOURCE


def problems(config: Config) -> list[Problem]:
    return []


def warnings(config: Config) -> list[str]:
    return []


def exactly_once_problem(config: Config) -> str | None:
    """Why this config cannot be exactly-once; None if it can: a file is only read on, standard input is gone
    once read."""
    if config.get("file", "").strip():
        return None
    return "The connector does not support exactly-once semantics with the provided configuration."
