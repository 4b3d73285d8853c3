"""The settings of FileStreamSink, Kafka's smallest sink. Found by name through `icestream.plugins`."""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.errors import Problem

FILE_STREAM_SINK: Final = ConfigDef(
    (
        Setting(
            "file", Type.STRING, None, "The file to append to; otherwise standard output.", importance="HIGH"
        ),
    )
)


def definition(config: Config) -> ConfigDef:
    return FILE_STREAM_SINK


def problems(config: Config) -> list[Problem]:
    return []


def warnings(config: Config) -> list[str]:
    return []
