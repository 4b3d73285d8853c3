"""Values that a config only points to: `${file:/path:key}`, `${dir:/path:file}`, `${env:NAME}`.

The worker resolves its own config at start, and a connector's when its job starts or is validated: what is
stored and shown keeps the placeholders.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, Self

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.configs.properties import decoded, parse_properties
from icestream.named_files import content
from icestream.plugins import CONFIG_PROVIDERS, find_config_provider

_log = logging.getLogger(__name__)

_LARGEST: Final = 2**20
"""Bytes of a file: a whole config has no more."""
MOST_BYTES: Final = 2 * 2**20
"""Characters of a config with its values: a few short placeholders must not fill the worker's memory."""
MOST_PLACEHOLDERS: Final = 1_000


@dataclass(frozen=True)
class Placeholder:
    """`${provider:path:key}` or `${provider:key}` in a text, and where it stands there."""

    start: int
    end: int
    text: str
    provider: str
    path: str
    key: str


def placeholders(text: str) -> Iterator[Placeholder]:
    """All of a text, from left to right, as Kafka's pattern finds them.

    Not by a pattern: on `${::::…` that takes hours, and whoever may send a config could stop the worker.
    """
    at = 0
    while (start := text.find("${", at)) >= 0 and (end := text.find("}", start) + 1):
        at = end
        provider, colon, rest = text[start + 2 : end - 1].partition(":")
        if colon:
            path, second, key = rest.partition(":")
            yield Placeholder(
                start, end, text[start:end], provider, path if second else "", key if second else rest
            )


class NotAvailable(Exception):
    """Why a provider cannot look at all, as the end of a sentence; never with a value."""


class ConfigProvider(Protocol):
    def value(self, path: str, key: str) -> str | None:
        """None if it is not there, or not allowed; raises NotAvailable."""


@dataclass(frozen=True)
class _AllowedPaths:
    """Where a provider may look: everywhere if no path is named."""

    roots: tuple[Path, ...] = ()

    def permitted(self, path: str) -> Path | None:
        """The path to open, which is the one that was looked at."""
        plain = Path(os.path.normpath(path))
        is_permitted = not self.roots or any(plain.is_relative_to(root) for root in self.roots)
        return plain if path and is_permitted else None


@dataclass(frozen=True)
class FileProvider:
    """Keys of a `.properties` file."""

    allowed: _AllowedPaths = _AllowedPaths()

    @classmethod
    def configured(cls, parameters: Config, prefix: str) -> Self:
        return cls(_allowed_paths(parameters, prefix))

    def value(self, path: str, key: str) -> str | None:
        file = self.allowed.permitted(path)
        if file is None:
            return None
        try:
            return parse_properties(decoded(content(file, _LARGEST)), path).get(key)
        except (OSError, ConfigError):
            raise NotAvailable(f"cannot read {path} as a properties file; check that it exists") from None


@dataclass(frozen=True)
class DirectoryProvider:
    """A file per key, its whole content the value: how Kubernetes mounts secrets."""

    allowed: _AllowedPaths = _AllowedPaths()

    @classmethod
    def configured(cls, parameters: Config, prefix: str) -> Self:
        return cls(_allowed_paths(parameters, prefix))

    def value(self, path: str, key: str) -> str | None:
        # A key is the name of a file in the folder, not a way out of it.
        folder = self.allowed.permitted(path)
        if folder is None or key != Path(key).name:
            return None
        file = folder / key
        try:
            return content(file, _LARGEST).decode("utf-8") if file.is_file() else None
        except (OSError, UnicodeDecodeError):
            raise NotAvailable(f"cannot read {file}; check its permissions") from None


@dataclass(frozen=True)
class EnvironmentProvider:
    """Environment variables whose whole name fits the pattern."""

    pattern: re.Pattern[str] = re.compile(".*")
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @classmethod
    def configured(cls, parameters: Config, prefix: str) -> Self:
        return cls(_pattern(parameters, prefix))

    def value(self, path: str, key: str) -> str | None:
        if path:
            raise NotAvailable(f"takes no path, but the placeholder has '{path}'; write only the variable")
        return self.variables.get(key) if self.pattern.fullmatch(key) else None


@dataclass(frozen=True)
class Providers:
    """The providers of a worker, by the name that placeholders use."""

    by_name: Mapping[str, ConfigProvider] = field(default_factory=dict)

    def resolved(self, config: Config) -> dict[str, str]:
        """The config with the values in place, in one pass.

        As in Kafka, a placeholder of an unknown provider, or of a value that is not there, stays as it is.
        Raises ConfigError with the keys whose provider cannot look.
        """
        problems: list[Problem] = []
        found: dict[str, str] = {}
        left, room = MOST_PLACEHOLDERS, MOST_BYTES
        for key, value in config.items():
            try:
                found[key], count = self._with_values(key, value, left)
            except NotAvailable as error:
                problems.append(Problem(key, f"'{key}' cannot be resolved: {error}"))
                continue
            left, room = left - count, room - len(found[key])
            if room < 0:
                why = f"with its values, the config has more than {MOST_BYTES} characters"
                raise _problem(key, f"'{key}' cannot be resolved: {why}; name smaller ones")
        if problems:
            raise ConfigError(problems)
        return found

    def _with_values(self, key: str, value: str, most: int) -> tuple[str, int]:
        """The text, and how many placeholders it had for one of our providers."""
        parts, at, count, size = [], 0, 0, 0
        for placeholder in placeholders(value):
            if placeholder.provider not in self.by_name:
                continue
            count += 1
            parts += [value[at : placeholder.start], self._value_of(key, placeholder)]
            at, size = placeholder.end, size + len(parts[-1])
            if count > most or size > MOST_BYTES:
                raise NotAvailable(
                    f"a config has at most {MOST_PLACEHOLDERS} placeholders and {MOST_BYTES} characters"
                )
        return "".join(parts) + value[at:], count

    def _value_of(self, key: str, placeholder: Placeholder) -> str:
        name = placeholder.provider
        try:
            value = self.by_name[name].value(placeholder.path, placeholder.key)
        except NotAvailable as error:
            raise NotAvailable(f"config provider '{name}' {error}") from None
        if value is None:
            _log.warning("'%s' has %s, which config provider '%s' does not have", key, placeholder.text, name)
            return placeholder.text
        return value


def providers_from(worker: Config) -> Providers:
    """The providers that a worker's config names; raises ConfigError with every problem."""
    names = [name.strip() for name in worker.get("config.providers", "").split(",") if name.strip()]
    problems: list[Problem] = []
    found: dict[str, ConfigProvider] = {}
    for name in names:
        try:
            found[name] = _provider(name, worker)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return Providers(found)


def _provider(name: str, worker: Config) -> ConfigProvider:
    key = f"config.providers.{name}.class"
    given = worker.get(key, "").strip()
    if not given:
        raise _problem(
            key,
            f"'config.providers' names '{name}', but '{key}' is not set; set it to "
            f"{CONFIG_PROVIDERS[0].class_name}",
        )
    plugin = find_config_provider(given)
    if plugin is None:
        classes = ", ".join(one.class_name for one in CONFIG_PROVIDERS)
        raise _problem(key, f"'{key}={given}' is a Java class that cannot run here; use one of {classes}")
    prefix = f"config.providers.{name}.param."
    found: ConfigProvider = plugin.make(subset(worker, prefix), prefix)
    return found


def _pattern(parameters: Config, prefix: str) -> re.Pattern[str]:
    text = parameters.get("allowlist.pattern", ".*")
    try:
        return re.compile(text)
    except re.error as error:
        key = f"{prefix}allowlist.pattern"
        raise _problem(key, f"'{key}={text}' is not a regular expression: {error}") from None


def _allowed_paths(parameters: Config, prefix: str) -> _AllowedPaths:
    key = f"{prefix}allowed.paths"
    roots = []
    for text in filter(None, parameters.get("allowed.paths", "").split(",")):
        root = Path(os.path.normpath(text.strip()))
        if not root.is_absolute() or not root.exists():
            raise _problem(key, f"'{key}' has '{text.strip()}', which must be absolute and exist; correct it")
        roots.append(root)
    return _AllowedPaths(tuple(roots))


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])
