"""Are the converters of a config ones that we have? Called by `connector_config`."""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.api.errors import Problem
from icestream.converters.catalog import JSON, converters_for, find_converter

_OF_OTHERS: Final = ("io.confluent.", "io.apicurio.", "com.amazonaws.", "io.debezium.")
"""They exist, only not here."""


def converter_problems(given: Config, effective: Config) -> list[Problem]:
    """`effective` has the worker's converters where the config names none."""
    found: list[Problem] = []
    for kind in CONVERTER_KINDS:
        key = f"{kind}.converter"
        named = (given.get(key) if key in given else effective.get(key, "")) or ""
        found += _problems(kind, key, named.strip(), is_given=key in given)
    return found


def _problems(kind: str, key: str, named: str, *, is_given: bool) -> list[Problem]:
    converter = find_converter(named)
    if converter is not None and converter.serves(kind):
        return []
    if converter is not None:
        interface = "HeaderConverter" if kind == "header" else "Converter"
        reason = f"Class class {converter.class_name} does not implement the {interface} interface"
        return [Problem(key, reason)]
    if named.startswith(_OF_OTHERS):
        choices = " or ".join(converters_for(kind))
        return [Problem(key, f"'{key}={named}' is not supported by this version; use {choices}")]
    if is_given or named:
        return [
            Problem(key, f"Invalid value {named} for configuration {key}: Class {named} could not be found.")
        ]
    if kind != "value":
        return []
    return [Problem(key, f"'{key}' is set neither here nor in the worker's config; set {key}={JSON}")]
