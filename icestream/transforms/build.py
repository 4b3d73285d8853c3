"""From a connector's config to its chain of transforms; called by the jobs, and to validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.records.records import Predicate
from icestream.transforms.catalog import Found, PredicatePlugin
from icestream.transforms.chain import Chain, Step
from icestream.transforms.declared import (
    NEGATE,
    PREDICATE,
    Declared,
    declared_predicates,
    declared_transforms,
)
from icestream.transforms.side import Side


def chain_from(config: Config) -> Chain:
    """Raises ConfigError with the keys of the config and Java's words."""
    transforms = declared_transforms(config)
    predicates = {one.alias: one for one in declared_predicates(config)}
    made = {alias: _predicate(one, config) for alias, one in predicates.items()}
    return Chain(
        [_step(one, config, made) for one in transforms],
        needs_keys=any(_needs_keys(one) for one in transforms),
        needs_headers=any(_reads_headers(one) for one in (*transforms, *predicates.values())),
    )


def _predicate(one: Declared, config: Config) -> Predicate:
    settings = one.parse(config)
    assert isinstance(one.found, PredicatePlugin)
    with _whole_keys(one.prefix):
        return one.found.make(settings)


def _step(one: Declared, config: Config, predicates: Mapping[str, Predicate]) -> Step:
    settings = one.parse(config)
    assert isinstance(one.found, Found)
    alias, negate = settings.pop(PREDICATE), settings.pop(NEGATE)
    if alias is not None and alias not in predicates:
        key = one.prefix + PREDICATE
        raise ConfigError(
            [Problem(key, f"'{key}={alias}' names no predicate; add {alias} to 'predicates', or remove it")]
        )
    with _whole_keys(one.prefix):
        transform = one.found.plugin.make(settings, one.found.side)
    predicate = None if alias is None else predicates[alias]
    return Step(one.alias, one.found.class_name, transform, predicate, negate)


@contextmanager
def _whole_keys(prefix: str) -> Iterator[None]:
    """What a class says of its own settings, said of the keys that they have in the config."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([Problem(prefix + one.key, one.message) for one in error.problems]) from None


def _needs_keys(one: Declared) -> bool:
    found = one.found
    return isinstance(found, Found) and (found.plugin.reads_key or found.side is Side.KEY)


def _reads_headers(one: Declared) -> bool:
    plugin = one.found.plugin if isinstance(one.found, Found) else one.found
    return plugin is not None and plugin.reads_headers
