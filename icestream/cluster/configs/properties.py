"""Config files as users have them: Java `.properties`, and connectors as JSON. Called by the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import ConfigError, Problem
from icestream.api.nesting import NestedTooDeeply, read_json

_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_INITIAL_STATES: Final = ("RUNNING", "PAUSED", "STOPPED")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class ConnectorFile:
    """What a connector's file says."""

    name: str
    config: dict[str, str]
    initial_state: str | None = None


def read_properties(path: Path) -> dict[str, str]:
    return parse_properties(_text(path), str(path))


def read_connector(path: Path) -> ConnectorFile:
    """A connector from `.properties`, from JSON with `name` and `config`, or from a flat JSON map."""
    return parse_connector(_text(path), str(path))


def parse_connector(text: str, source: str, default_name: str | None = None) -> ConnectorFile:
    """The same from a text; a default name is for texts that have none."""
    if text.lstrip()[:1] in ("{", "[") or source.endswith(".json"):
        return _connector_from_json(text, source, default_name)
    return _named(parse_properties(text, source), source, default_name)


def parse_properties(text: str, source: str = "properties") -> dict[str, str]:
    """The pairs of a `.properties` text, as by java.util.Properties; of equal keys the last wins."""
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        try:
            pairs[_unescaped(raw_key)] = _unescaped(raw_value)
        except ValueError as error:
            raise _error(f"{source}, line {number}: {error}") from None
    return pairs


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, comments and blank lines left out, each with its number."""
    number, content = 0, ""
    for here, line in enumerate(_LINE_END.split(text), start=1):
        stripped = line.lstrip(_BLANK)
        if not content:
            # As long as a line has nothing but continuations, a comment or a blank line may follow them.
            if stripped[:1] in ("", "#", "!"):
                continue
            number = here
        content += stripped
        if _is_continued(content):
            content = content[:-1]
        else:
            yield number, content
            content = ""
    if content:
        yield number, content


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in _BLANK + "=:":
        end += 2 if line[end] == "\\" else 1
    key, rest = line[:end], line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescaped(raw: str) -> str:
    if "\\" not in raw:
        return raw
    out: list[str] = []
    at = 0
    while at < len(raw):
        if raw[at] != "\\":
            out.append(raw[at])
            at += 1
        elif raw[at + 1 : at + 2] == "u":
            digits = raw[at + 2 : at + 6]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise ValueError(f"'\\u{digits}' is not a character; write \\u and four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            char = raw[at + 1 : at + 2]
            out.append(_ESCAPES.get(char, char))
            at += 2
    # Characters beyond the first 65,536 come as two escapes, which Java joins as UTF-16.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _error(f"cannot read {path}: {error.strerror}; check the path") from error
    return decoded(raw)


def decoded(raw: bytes) -> str:
    """UTF-8, as people write today, or else Java's old encoding of `.properties`."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("iso-8859-1")


def _connector_from_json(text: str, source: str, default_name: str | None) -> ConnectorFile:
    try:
        document = read_json(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise _error(f"{source}, line {error.lineno}: not valid JSON ({error.msg}); mend that line") from None
    except NestedTooDeeply:
        raise _error(f"{source}: not valid JSON (nested too deep); a connector is a flat object") from None
    if not isinstance(document, dict):
        raise _error(f"{source}: a connector is a JSON object, not a {_kind(document)}")
    if "config" in document and not isinstance(document["config"], dict):
        raise _error(f"{source}: 'config' must be a JSON object of keys and values")
    if "config" not in document:
        return _named(_strings(document, source), source, default_name)
    config = _strings(document["config"], source)
    name = document.get("name", config.get("name", default_name))
    if name is None:
        raise _error(f"{source}: the connector has no 'name'; add one")
    if config.setdefault("name", str(name)) != name:
        raise _error(f"{source}: 'name' is '{name}' but 'config' says '{config['name']}'; make them equal")
    initial = document.get("initial_state")
    if initial is not None and str(initial).upper() not in _INITIAL_STATES:
        raise _error(f"{source}: initial_state '{initial}' is not one of {', '.join(_INITIAL_STATES)}")
    return ConnectorFile(str(name), config, None if initial is None else str(initial))


def _named(config: dict[str, str], source: str, default_name: str | None) -> ConnectorFile:
    if default_name is not None:
        config.setdefault("name", default_name)
    if not config.get("name", "").strip():
        raise _error(f"{source}: the connector has no 'name'; add one")
    return ConnectorFile(config["name"].strip(), config)


def _strings(document: dict[str, Any], source: str) -> dict[str, str]:
    config: dict[str, str] = {}
    for key, value in document.items():
        if isinstance(value, bool):
            config[key] = "true" if value else "false"
        elif isinstance(value, str):
            config[key] = value
        else:
            raise _error(
                f"{source}: the value of '{key}' is a {_kind(value)}; write a string, a number or a boolean"
            )
    return config


def _kind(value: object) -> str:
    names = {dict: "JSON object", list: "JSON list", type(None): "null", str: "JSON string or number"}
    return names.get(type(value), "JSON value")


def _error(message: str) -> ConfigError:
    return ConfigError([Problem("", message)])
