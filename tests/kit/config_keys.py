"""A pytest plugin: which keys of each connector the tests of a run set.

A key is set where a test has a config parsed that has it, and where a worker takes a connector with it from
its client.

At the end of a whole run (`make test`) whose tests passed, a key that no test set to a value that is accepted
fails the run. A partial run checks nothing.
"""

from __future__ import annotations

import functools
import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from icestream.api.config import Config, ConfigDef, Setting
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.errors import NotFoundError
from icestream.api.source_settings import SOURCE_CONNECTOR
from icestream.client import ConnectClient
from icestream.plugins import find_connector

_PROJECT: Final = Path(__file__).parents[2] / "pyproject.toml"
_TABLES: Final = {"iceberg.tables": "ns.t", "delta.tables": "ns.t"}
_OF_A_TABLE: Final = re.compile(r"(iceberg|delta)\.table\.(?!write-props\.).+\.([\w-]+)")
_RECORD: Final = pytest.StashKey["KeysSet"]()
_MISSING: Final = pytest.StashKey[list[str]]()


@dataclass(frozen=True)
class Declared:
    """The keys of a connector class that need a test. Those of a table have `<table>` in place of its name,
    and a key that ends with a dot stands for all keys that begin so."""

    name: str
    settings: Mapping[int, str]
    """The name of each setting, by the identity of the object, which classes may share."""
    prefixes: frozenset[str]
    of_tables: frozenset[str]

    @property
    def keys(self) -> set[str]:
        return {*self.settings.values(), *self.prefixes, *self.of_tables}

    def among(self, config: Config) -> Iterator[str]:
        """Which of the keys without a setting of their own a config has."""
        for key in config:
            yield from (one for one in self.prefixes if key.startswith(one) and key != one)
            if (one := _without_table(key)) in self.of_tables:
                yield one


def _without_table(key: str) -> str:
    return _OF_A_TABLE.sub(r"\1.table.<table>.\2", key)


@functools.cache
def declared() -> list[Declared]:
    """Of every connector of this package; and the keys of ours that every sink and every source has."""
    points = tomllib.loads(_PROJECT.read_text())["project"]["entry-points"]["icestream.connectors"]
    plugins = [
        getattr(import_module(module), name)() for module, name in (one.split(":") for one in points.values())
    ]
    common = {"every sink": SINK_CONNECTOR, "every source": SOURCE_CONNECTOR}
    return [*(_common(name, one) for name, one in common.items()), *map(_of_plugin, plugins)]


def _common(name: str, definition: ConfigDef) -> Declared:
    ours = {id(one): one.name for one in definition.settings if one.name.startswith("icestream.")}
    return Declared(name, ours, frozenset(), frozenset())


def _of_plugin(plugin: ConnectorPlugin) -> Declared:
    return Declared(
        plugin.classes[0].name,
        {id(one): one.name for one in plugin.settings.settings if _has_effect(plugin, one.name)},
        frozenset(plugin.settings.prefixes),
        frozenset(one for key in plugin.definition(_TABLES).names if (one := _without_table(key)) != key),
    )


def _has_effect(plugin: ConnectorPlugin, key: str) -> bool:
    """A key without effect needs no test; the docs name it, and another test looks whether they do."""
    return not any(one.startswith(f"'{key}' has no effect: ") for one in plugin.warnings({key: "1"}))


@functools.cache
def _classes_of_settings() -> Mapping[int, list[Declared]]:
    found: dict[int, list[Declared]] = {}
    for one in declared():
        for setting in one.settings:
            found.setdefault(setting, []).append(one)
    return found


@dataclass
class KeysSet:
    """The keys that tests set, by connector class."""

    by_class: dict[str, set[str]] = field(default_factory=dict)

    def parsed(self, setting: Setting) -> None:
        for one in _classes_of_settings().get(id(setting), ()):
            self._add(one.name, [setting.name])

    def read(self, definition: ConfigDef, config: Config) -> None:
        settings = {id(one) for one in definition.settings}
        for one in declared():
            if (one.prefixes or one.of_tables) and not settings.isdisjoint(one.settings):
                self._add(one.name, one.among(config))

    def taken(self, config: Config) -> None:
        """By a worker, for a connector of this config."""
        try:
            plugin = find_connector(config.get("connector.class", "")).plugin
        except NotFoundError:
            return  # by a worker that a test makes up
        names = {plugin.classes[0].name, f"every {plugin.kind}"}
        for one in declared():
            if one.name in names:
                self._add(one.name, {*one.keys.intersection(config), *one.among(config)})

    def merge(self, packed: Mapping[str, Sequence[str]]) -> None:
        """What another process of this run recorded."""
        for name, keys in packed.items():
            self._add(name, keys)

    def packed(self) -> dict[str, list[str]]:
        return {name: sorted(keys) for name, keys in self.by_class.items()}

    def missing(self) -> list[str]:
        """A line for each class with keys that no test set."""
        missing = {one.name: one.keys - self.by_class.get(one.name, set()) for one in declared()}
        return [f"{name}: {', '.join(sorted(keys))}" for name, keys in missing.items() if keys]

    def _add(self, name: str, keys: Iterable[str]) -> None:
        self.by_class.setdefault(name, set()).update(keys)


# -- hooks --


@contextmanager
def recorded(record: KeysSet) -> Iterator[None]:
    """What is parsed meanwhile is in this record, and in no other."""
    parse_setting, parse_config = inspect.unwrap(Setting.parse), inspect.unwrap(ConfigDef.parse)
    create = inspect.unwrap(ConnectClient.create)

    @functools.wraps(parse_setting)
    def setting_parsed(self: Setting, text: str) -> Any:
        value = parse_setting(self, text)
        record.parsed(self)
        return value

    @functools.wraps(parse_config)
    def config_parsed(self: ConfigDef, config: Config) -> dict[str, Any]:
        values = parse_config(self, config)
        record.read(self, config)
        return values

    @functools.wraps(create)
    def created(self: ConnectClient, name: str, config: Config, *more: Any, **others: Any) -> dict[str, Any]:
        answer = create(self, name, config, *more, **others)
        record.taken(config)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConnectClient, "create", created)
        patch.setattr(Setting, "parse", setting_parsed)
        patch.setattr(ConfigDef, "parse", config_parsed)
        yield


def pytest_configure(config: pytest.Config) -> None:
    record = config.stash[_RECORD] = KeysSet()
    whole_run = ExitStack()
    whole_run.enter_context(recorded(record))
    config.add_cleanup(whole_run.close)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # A process that crashed has sent nothing.
    node.config.stash[_RECORD].merge(getattr(node, "workeroutput", {}).get("config_keys", {}))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config, record = session.config, session.config.stash[_RECORD]
    if hasattr(config, "workeroutput"):
        config.workeroutput["config_keys"] = record.packed()
    elif exitstatus == pytest.ExitCode.OK and _is_whole_run(config):
        config.stash[_MISSING] = record.missing()
        if config.stash[_MISSING]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if missing := config.stash.get(_MISSING, []):
        terminalreporter.section("keys that no test sets", red=True)
        for one in missing:
            terminalreporter.write_line(one)
        terminalreporter.write_line(
            "write a test that parses a config with the key (tests/kit/config_keys.py)"
        )


def _is_whole_run(config: pytest.Config) -> bool:
    option = config.option
    chosen = (option.keyword, option.deselect, option.ignore, option.ignore_glob, option.collectonly)
    return (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and option.markexpr in ("", "not long")
        and not any(chosen)
        and not getattr(option, "lf", False)
    )
