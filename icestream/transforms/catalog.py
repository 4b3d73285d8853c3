"""The transforms and predicates that we have: class names as in configs, settings, and where the code is.

The control plane validates and lists with it; `build` makes a chain from it. Code is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, cast

from icestream.api.config import ConfigDef
from icestream.records.records import Predicate, Transform
from icestream.transforms.side import Side

KAFKA: Final = "org.apache.kafka.connect.transforms."
ICEBERG: Final = "org.apache.iceberg.connect.transforms."


@dataclass(frozen=True)
class TransformPlugin:
    """A transform under its Java name, without `$Key` or `$Value`."""

    class_name: str
    settings: ConfigDef
    factory: str
    """`module:function`; called with the parsed settings and the side."""
    sides: Sequence[Side] = ()
    """Empty: the class has no `$Key` and `$Value`."""
    reads_key: bool = False
    """Whether it needs keys decoded though it is not for keys."""
    reads_headers: bool = False

    def make(self, settings: Mapping[str, Any], side: Side) -> Transform:
        module, _, name = self.factory.partition(":")
        factory = cast(Callable[[Mapping[str, Any], Side], Transform], getattr(import_module(module), name))
        return factory(settings, side)


@dataclass(frozen=True)
class PredicatePlugin:
    class_name: str
    settings: ConfigDef
    factory: str
    """`module:function`; called with the parsed settings."""
    reads_headers: bool = False

    def make(self, settings: Mapping[str, Any]) -> Predicate:
        module, _, name = self.factory.partition(":")
        return cast(Callable[[Mapping[str, Any]], Predicate], getattr(import_module(module), name))(settings)
