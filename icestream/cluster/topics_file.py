"""Reads a topics file: YAML, in which `connector.topics` has an entry for each topic. What connectors
are made of the entries is the business of the sink that knows such files. Called by the command line.

Other sections of the file are of the program that it comes from, and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from icestream import named_files
from icestream.api.errors import ConfigError, PreconditionError, Problem
from icestream.api.topics_file import TopicEntry, TopicsFileRules
from icestream.bounded_yaml import BoundedLoader
from icestream.cluster.configs.properties import ConnectorFile
from icestream.plugins import topics_file_rules

_MOST_BYTES: Final = 2**20
_MOST_TOPICS: Final = 1_000
_PLACE: Final = "connector.topics"
_KEYS: Final = {
    "": ("topic-name", "schema-file", "destination", "processing"),
    "destination": ("bucket", "prefix", "table-name", "partition-columns"),
    "processing": ("batch-size", "flush-interval", "max-retries"),
}
_LARGEST: Final = 2**31 - 1


def rules_for(environ: Mapping[str, str]) -> TopicsFileRules:
    """Of the installed sink that knows topics files; ConfigError if a variable is wrong."""
    rules = topics_file_rules(environ)
    if rules is None:
        raise PreconditionError("no connector of this Python environment knows topics files")
    return rules


def read_topics_file(path: Path, rules: TopicsFileRules) -> list[ConnectorFile]:
    """One connector for each topic; ConfigError with every problem of the file."""
    found: list[ConnectorFile] = []
    problems: list[Problem] = []
    for name, content in _topics(path).items():
        try:
            config = rules.connector(_entry(name, content, path.absolute().parent))
            found.append(ConnectorFile(name, {"name": name, **config}))
        except ConfigError as error:
            problems += [_placed(path, name, one) for one in error.problems]
    if problems:
        raise ConfigError(problems)
    return found


def _placed(path: Path, name: str, problem: Problem) -> Problem:
    key = f"{_PLACE}.{name}.{problem.key}" if problem.key else f"{_PLACE}.{name}"
    return Problem(key, f"{path}: {key}: {problem.message}")


# -- the file --


class _Loader(BoundedLoader):
    """No key twice: YAML's own loader takes the last one in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: a key is no text")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: the key '{key.value[:100]}' is there twice")
            seen.add(key.value)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def _topics(path: Path) -> dict[str, Any]:
    document = _document(path)
    connector = document.get("connector") if isinstance(document, dict) else None
    topics = connector.get("topics") if isinstance(connector, dict) else None
    if not isinstance(topics, dict) or not topics:
        raise _refused(path, f"it has no '{_PLACE}' with an entry for each topic; add them")
    if len(topics) > _MOST_TOPICS:
        raise _refused(path, f"it has {len(topics)} topics; {_MOST_TOPICS} are the most, use several files")
    named = {str(name): content for name, content in topics.items()}
    if len(named) < len(topics):
        raise _refused(path, f"two topics of '{_PLACE}' have one name; rename one")
    return named


def _document(path: Path) -> Any:
    try:
        content = named_files.content(path, _MOST_BYTES)
    except OSError as error:
        raise _refused(path, f"it cannot be read: {error.strerror}; check the path") from error
    try:
        return yaml.load(content.decode("utf-8-sig"), Loader=_Loader)
    except UnicodeDecodeError:
        raise _refused(path, "it is not UTF-8; save it as such") from None
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(path, f"it is not plain YAML: {_reason(error)}; mend it") from None


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"line {mark.line + 1}: {words[:300]}" if mark is not None else words[:300]


def _refused(path: Path, reason: str) -> ConfigError:
    return ConfigError([Problem("", f"topics file {path}: {reason}")])


# -- one entry --


def _entry(name: str, content: Any, folder: Path) -> TopicEntry:
    parts = _Parts()
    top = parts.section("", content)
    destination = parts.section("destination", top.get("destination"))
    processing = parts.section("processing", top.get("processing"))
    entry = TopicEntry(
        name,
        parts.text("topic-name", top) or name,
        parts.schema(top, folder),
        parts.text("bucket", destination, "destination."),
        parts.text("prefix", destination, "destination."),
        parts.text("table-name", destination, "destination."),
        parts.names("partition-columns", destination, "destination."),
        parts.number("batch-size", processing, 1),
        parts.number("flush-interval", processing, 1),
        parts.number("max-retries", processing, 0),
    )
    if parts.problems:
        raise ConfigError(parts.problems)
    return entry


class _Parts:
    """What an entry says, by kind; what is wrong is gathered, so that all of it is told at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def section(self, place: str, content: Any) -> Mapping[str, Any]:
        if content is None:
            return {}
        if not isinstance(content, dict):
            self._refuse(place, "it is no section with keys; indent them below it")
            return {}
        found = {}
        for key, value in content.items():
            # Spring reads batchSize and batch_size as batch-size.
            written = re.sub(r"(?<=[a-z])(?=[A-Z])|_", "-", str(key)).lower()
            if written in _KEYS[place]:
                found[written] = value
            else:
                dot = f"{place}." if place else ""
                self._refuse(
                    f"{dot}{str(key)[:100]}", f"nobody knows this key; there are {', '.join(_KEYS[place])}"
                )
        return found

    def text(self, key: str, section: Mapping[str, Any], place: str = "") -> str | None:
        value = section.get(key)
        if value is None:
            return None
        if not isinstance(value, str | int | float) or isinstance(value, bool) or not str(value).strip():
            self._refuse(f"{place}{key}", "it is no text; write one")
            return None
        return str(value).strip()

    def number(self, key: str, section: Mapping[str, Any], least: int) -> int | None:
        value = section.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
            self._refuse(f"processing.{key}", f"it is no whole number of at least {least}; write one")
            return None
        return value

    def names(self, key: str, section: Mapping[str, Any], place: str) -> tuple[str, ...]:
        value = section.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            value = [part for part in value.split(",") if part.strip()]
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            self._refuse(f"{place}{key}", "it is no list of names, such as [year, month, day]; write one")
            return ()
        return tuple(one.strip() for one in value)

    def schema(self, top: Mapping[str, Any], folder: Path) -> str | None:
        """Its text goes into the config: the worker may be on another machine."""
        named = self.text("schema-file", top)
        if named is None:
            return None
        try:
            return named_files.content(folder / named, _MOST_BYTES).decode("utf-8-sig")
        except OSError as error:
            reason = f"'{named}' (looked for in {folder}) cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            reason = f"'{named}' is not UTF-8"
        self._refuse("schema-file", f"{reason}; correct the path or the file")
        return None

    def _refuse(self, key: str, reason: str) -> None:
        self.problems.append(Problem(key, reason))
