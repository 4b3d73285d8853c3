"""The transforms and predicates that a config names by aliases, with the settings that it may have for them.

The control plane validates with them, `build` makes the chain of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.transforms.catalog import (
    ALL_PREDICATES,
    Found,
    PredicatePlugin,
    TransformPlugin,
    all_transforms,
    find_predicate,
    find_transform,
)

TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
TYPE, VERSION, PREDICATE, NEGATE = "type", "plugin.version", "predicate", "negate"
_INTERFACES: Final = {TRANSFORMS: "Transformation", PREDICATES: "Predicate"}
_OWN_SETTINGS: Final = 2
"""How many come before those of the class: type and version."""

_EVERY_TRANSFORM: Final = (
    Setting(PREDICATE, Type.STRING, None, "The alias of the predicate that says which records it is for."),
    Setting(NEGATE, Type.BOOLEAN, False, "Whether it is for the records that the predicate is not true of."),
)


@dataclass(frozen=True)
class Declared:
    """One alias of `transforms` or `predicates`."""

    family: str
    alias: str
    class_name: str
    """As the config has it; empty if it has none."""
    found: Found | PredicatePlugin | None
    asked_version: str | None = None
    """The version that the config asks for."""
    is_negated_nothing: bool = False

    @property
    def prefix(self) -> str:
        return f"{self.family}.{self.alias}."

    @property
    def version(self) -> str | None:
        return None if self.found is None else _plugin(self.found).version

    @property
    def full_name(self) -> str | None:
        """The class in full, if it is one."""
        if self.found is not None:
            return self.found.class_name
        misfit = _misfit(self)
        return misfit.class_name if misfit else None

    @property
    def own(self) -> ConfigDef:
        """The settings without the prefix, but for type and version."""
        if self.found is None or self._version_problem():
            return ConfigDef(())
        settings = _plugin(self.found).settings
        return ConfigDef(_EVERY_TRANSFORM) + settings if self.family == TRANSFORMS else settings

    def definition(self) -> ConfigDef:
        group = f"{self.family.capitalize()}: {self.alias}"
        kind = _INTERFACES[self.family]
        named = (
            Setting(
                self.prefix + TYPE,
                Type.CLASS,
                REQUIRED,
                f"The class of '{self.alias}'.",
                importance="HIGH",
                group=group,
                order=0,
                width="LONG",
                display_name=f"{kind} type for {self.alias}",
                rule=self._judge_class,
            ),
            Setting(
                self.prefix + VERSION,
                Type.STRING,
                self.version,
                f"The version of the class of '{self.alias}'.",
                importance="HIGH",
                group=group,
                order=1,
                width="LONG",
                display_name=f"{kind} version for {self.alias}",
                rule=lambda key, version: self._version_problem(),
            ),
        )
        return ConfigDef(named) + self.own.under(self.prefix, group, _OWN_SETTINGS)

    def parse(self, config: Mapping[str, str]) -> dict[str, Any]:
        """The settings of the class by their own names; raises ConfigError with the whole keys."""
        definition = self.definition()
        everything = {key: config[key] for key in config if key.startswith(tuple(definition.prefixes))}
        everything |= definition.parse(config)
        short = {key.removeprefix(self.prefix): value for key, value in everything.items()}
        return {key: value for key, value in short.items() if key not in (TYPE, VERSION)}

    def _judge_class(self, key: str, name: str | None) -> str | None:
        if self.is_negated_nothing:
            return (
                f"Config '{self.prefix}{NEGATE}' was provided but there is no config "
                f"'{self.prefix}{PREDICATE}' defining a predicate to be negated."
            )
        if name is None or self.found is not None:
            return self._version_problem()
        if misfit := _misfit(self):
            return misfit.reason
        return f"Invalid value {name} for configuration {key}: Class {name} could not be found."

    def _version_problem(self) -> str | None:
        """We have one version of each class."""
        asked = self.asked_version
        if self.found is None or asked is None or asked == self.version:
            return None
        return (
            f"Plugin {self.found.class_name} not found that matches the version range [{asked},{asked}], "
            f"available versions: [{self.version}]"
        )


def declared(config: Mapping[str, str | None]) -> list[Declared]:
    """Transforms in their order, then predicates; an alias that is there twice, once."""
    return [*declared_transforms(config), *declared_predicates(config)]


def declared_transforms(config: Mapping[str, str | None]) -> list[Declared]:
    return _declared(TRANSFORMS, config, find_transform)


def declared_predicates(config: Mapping[str, str | None]) -> list[Declared]:
    return _declared(PREDICATES, config, find_predicate)


def recommended(family: str) -> tuple[str, ...]:
    """The classes to choose from."""
    if family == PREDICATES:
        return tuple(plugin.class_name for plugin in ALL_PREDICATES)
    return tuple(sorted(name for plugin in all_transforms() for name in plugin.class_names))


def _declared(
    family: str,
    config: Mapping[str, str | None],
    find: Callable[[str], Found | PredicatePlugin | None],
) -> list[Declared]:
    text = (config.get(family) or "").strip()
    aliases = dict.fromkeys(alias.strip() for alias in text.split(",")) if text else {}
    return [_one(family, alias, config, find) for alias in aliases]


def _one(
    family: str,
    alias: str,
    config: Mapping[str, str | None],
    find: Callable[[str], Found | PredicatePlugin | None],
) -> Declared:
    prefix = f"{family}.{alias}."
    class_name = (config.get(prefix + TYPE) or "").strip()
    version = config.get(prefix + VERSION)
    return Declared(
        family,
        alias,
        class_name,
        find(class_name),
        None if version is None else version.strip(),
        family == TRANSFORMS and prefix + NEGATE in config and prefix + PREDICATE not in config,
    )


def _plugin(found: Found | PredicatePlugin) -> TransformPlugin | PredicatePlugin:
    return found.plugin if isinstance(found, Found) else found


@dataclass(frozen=True)
class _Misfit:
    """A class that exists, but is none to choose."""

    class_name: str
    reason: str


def _misfit(one: Declared) -> _Misfit | None:
    is_transform = one.family == TRANSFORMS
    for plugin in all_transforms() if is_transform else ():
        if plugin.sides and one.class_name == plugin.class_name:
            choices = ", ".join(plugin.class_names)
            reason = f"This class is abstract and cannot be created. Did you mean {choices}?"
            return _Misfit(one.class_name, reason)
    found = find_predicate(one.class_name) if is_transform else find_transform(one.class_name)
    if found is None:
        return None
    interface = _INTERFACES[one.family]
    reason = f"Class class {found.class_name} does not implement the {interface} interface"
    return _Misfit(found.class_name, reason)
