"""A worker's properties from `CONNECT_*` environment variables, by the rule of the cp-kafka-connect images.

Called by `icestream distributed` when it is given no file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icestream.api.errors import ConfigError, Problem
from icestream.cluster.configs.properties import parse_properties

_PREFIX: Final = "CONNECT_"
_BLOCK: Final = "ICESTREAM_WORKER_PROPERTIES"
"""Lines of a `.properties` file: for keys that no variable can name, as they have capitals."""
_REQUIRED: Final = (
    "CONNECT_BOOTSTRAP_SERVERS",
    "CONNECT_GROUP_ID",
    "CONNECT_CONFIG_STORAGE_TOPIC",
    "CONNECT_OFFSET_STORAGE_TOPIC",
    "CONNECT_STATUS_STORAGE_TOPIC",
    "CONNECT_KEY_CONVERTER",
    "CONNECT_VALUE_CONVERTER",
    "CONNECT_REST_ADVERTISED_HOST_NAME",
)
_AVRO: Final = "io.confluent.connect.avro.AvroConverter"
_OF_THE_IMAGE: Final = ("CONNECT_METRIC_REPORTERS", "CONNECT_LOG4J_", "CONNECT_CUB_")
"""Beginnings of the names that the image's scripts use themselves, or leave out."""
_ROOT_LEVEL: Final = "CONNECT_LOG4J_ROOT_LOGLEVEL"
_LOGGERS: Final = "CONNECT_LOG4J_LOGGERS"
_LEVELS: Final = {"WARN": "WARNING", "TRACE": "DEBUG", "ALL": "DEBUG", "FATAL": "ERROR", "OFF": "ERROR"}


def worker_properties_from(environ: Mapping[str, str]) -> dict[str, str]:
    """The properties of all `CONNECT_*` variables; every missing one at once, as a ConfigError."""
    return _properties(environ, _missing(environ))


def given_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """The same, where none has to be there."""
    return _properties(environ, [])


def _properties(environ: Mapping[str, str], problems: list[Problem]) -> dict[str, str]:
    properties: dict[str, str] = {}
    try:
        properties |= parse_properties(environ.get(_BLOCK, ""), _BLOCK)
    except ConfigError as error:
        problems += error.problems
    for variable, value in environ.items():
        if not variable.startswith(_PREFIX) or variable.startswith(_OF_THE_IMAGE):
            continue
        try:
            # The image writes the value into a .properties file as it is: backslashes are escapes there.
            properties |= parse_properties(f"{property_name(variable)}={value}", variable)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return properties | _log_properties(environ)


def property_name(variable: str) -> str:
    """`CONNECT_A_B__C___D` is `a.b_c-d`: one underscore is a dot, two are one, three are a dash."""
    return re.sub("_+", _sign, variable.removeprefix(_PREFIX).lower())


def _sign(underscores: re.Match[str]) -> str:
    dashes, rest = divmod(len(underscores.group()), 3)
    at_an_edge = underscores.start() == 0 or underscores.end() == len(underscores.string)
    if not dashes and rest == 1 and not at_an_edge:
        return "."
    return "-" * dashes + ("_" if rest else "")


def _missing(environ: Mapping[str, str]) -> list[Problem]:
    needed = list(_REQUIRED)
    needed += [
        f"{variable}_SCHEMA_REGISTRY_URL"
        for variable in ("CONNECT_KEY_CONVERTER", "CONNECT_VALUE_CONVERTER")
        if environ.get(variable) == _AVRO
    ]
    return [
        Problem(
            property_name(variable),
            f"{variable} is required; set it, or start with a file that has '{property_name(variable)}'",
        )
        for variable in needed
        if not environ.get(variable)
    ]


def _log_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """Levels of the image's Log4j, as our keys; ours win if they are set themselves."""
    found = {}
    level = environ.get(_ROOT_LEVEL, "").strip().upper()
    if level and not environ.get("CONNECT_ICESTREAM_LOG_LEVEL"):
        found["icestream.log.level"] = _LEVELS.get(level, level)
    loggers = environ.get(_LOGGERS, "").strip()
    if loggers and not environ.get("CONNECT_ICESTREAM_LOG_LOGGERS"):
        found["icestream.log.loggers"] = loggers
    return found
