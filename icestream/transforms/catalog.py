"""The transforms and predicates that we have: class names as in configs, settings, and where the code is.

The control plane validates and lists with it; `chain` makes a chain from it. Code is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from icestream.api.config import ConfigDef
from icestream.records.records import Predicate, Transform
from icestream.transforms.groups import Side
from icestream.transforms.settings import PREDICATES, TRANSFORMS

KAFKA: Final = "org.apache.kafka.connect.transforms."
ICEBERG: Final = "org.apache.iceberg.connect.transforms."
TABULAR: Final = "io.tabular.iceberg.connect.transforms."
KAFKA_VERSION: Final = "4.3.1"
ICEBERG_VERSION: Final = "1.12.0"
USER_GROUP: Final = "icestream.transforms"
"""The entry point group of users' functions."""
_ANY_KEY: Final = ConfigDef((), prefixes=("",))


@dataclass(frozen=True)
class TransformPlugin:
    """A transform under its Java name, without `$Key` or `$Value`."""

    class_name: str
    settings: ConfigDef
    factory: str
    """`module:Class`; its `configured` is called with the parsed settings and the side."""
    sides: Sequence[Side] = ()
    """Empty: the class has no `$Key` and `$Value`."""
    reads_key: bool = False
    """Whether it needs keys decoded though it is not for keys."""
    reads_headers: bool = False
    version: str = KAFKA_VERSION

    @property
    def class_names(self) -> list[str]:
        """As configs and REST name it."""
        return [f"{self.class_name}${side.value}" for side in self.sides] or [self.class_name]

    def make(self, settings: Mapping[str, Any], side: Side) -> Transform:
        made: Transform = _code(self.factory).configured(settings, side)
        return made


@dataclass(frozen=True)
class UserPlugin(TransformPlugin):
    """A user's function, by the name of its entry point. It gets all keys as they are."""

    def make(self, settings: Mapping[str, Any], side: Side) -> Transform:
        made: Transform = _code(self.factory).named(self.class_name, settings)
        return made


@dataclass(frozen=True)
class PredicatePlugin:
    class_name: str
    settings: ConfigDef
    factory: str
    """`module:Class`; its `configured` is called with the parsed settings."""
    reads_headers: bool = False
    version: str = KAFKA_VERSION

    def make(self, settings: Mapping[str, Any]) -> Predicate:
        made: Predicate = _code(self.factory).configured(settings)
        return made


@dataclass(frozen=True)
class Found:
    """A transform by one of its names."""

    plugin: TransformPlugin
    side: Side = Side.VALUE

    @property
    def class_name(self) -> str:
        sided = f"{self.plugin.class_name}${self.side.value}"
        return sided if self.plugin.sides else self.plugin.class_name


def _code(factory: str) -> Any:
    module, _, name = factory.partition(":")
    return getattr(import_module(module), name)


_BOTH: Final = (Side.KEY, Side.VALUE)


def _kafka(
    name: str, module: str, *, sides: Sequence[Side] = _BOTH, headers: bool = False
) -> TransformPlugin:
    factory = f"icestream.transforms.{module}:{name}"
    return TransformPlugin(f"{KAFKA}{name}", TRANSFORMS[name], factory, sides, reads_headers=headers)


def _iceberg(name: str, module: str, *, reads_key: bool = False) -> list[TransformPlugin]:
    """Under its name of today, and under that of the connector's first home."""
    factory = f"icestream.transforms.{module}:{name}"
    settings = TRANSFORMS[name]
    return [
        TransformPlugin(package + name, settings, factory, reads_key=reads_key, version=ICEBERG_VERSION)
        for package in (ICEBERG, TABULAR)
    ]


def _predicate(name: str, *, headers: bool = False) -> PredicatePlugin:
    factory = f"icestream.transforms.predicates:{name}"
    return PredicatePlugin(f"{KAFKA}predicates.{name}", PREDICATES[name], factory, headers)


KAFKA_TRANSFORMS: Final = (
    _kafka("Cast", "cast"),
    _kafka("DropHeaders", "drop_headers", sides=(), headers=True),
    _kafka("ExtractField", "extract_field"),
    _kafka("Filter", "filter", sides=()),
    _kafka("Flatten", "flatten"),
    _kafka("HeaderFrom", "header_from", headers=True),
    _kafka("HoistField", "hoist_field"),
    _kafka("InsertField", "insert_field"),
    _kafka("InsertHeader", "insert_header", sides=(), headers=True),
    _kafka("MaskField", "mask_field"),
    _kafka("RegexRouter", "regex_router", sides=()),
    _kafka("ReplaceField", "replace_field"),
    _kafka("SetSchemaMetadata", "set_schema_metadata"),
    _kafka("TimestampConverter", "timestamp_converter"),
    _kafka("TimestampRouter", "timestamp_router", sides=()),
    _kafka("ValueToKey", "value_to_key", sides=()),
)
ICEBERG_TRANSFORMS: Final = (
    *_iceberg("CopyValue", "copy_value"),
    *_iceberg("DebeziumTransform", "cdc.debezium", reads_key=True),
    *_iceberg("DmsTransform", "cdc.dms"),
    *_iceberg("JsonToMapTransform", "json_to_map"),
    *_iceberg("KafkaMetadataTransform", "kafka_metadata"),
    *_iceberg("MongoDebeziumTransform", "cdc.mongo_debezium", reads_key=True),
)
ALL_PREDICATES: Final = (
    _predicate("HasHeaderKey", headers=True),
    _predicate("RecordIsTombstone"),
    _predicate("TopicNameMatches"),
)


def all_transforms() -> Sequence[TransformPlugin]:
    return (*KAFKA_TRANSFORMS, *ICEBERG_TRANSFORMS, *_user_plugins())


def _user_plugins() -> list[UserPlugin]:
    factory = "icestream.transforms.user_functions:UserFunction"
    return [
        UserPlugin(one.name, _ANY_KEY, factory, version=one.dist.version if one.dist else "undefined")
        for one in entry_points(group=USER_GROUP)
    ]


def find_transform(name: str) -> Found | None:
    """By full class name, by simple name where the class has no `$Key` and `$Value`, or a user's function."""
    return _find(name, (*KAFKA_TRANSFORMS, *ICEBERG_TRANSFORMS)) or _find(name, _user_plugins())


def _find(name: str, plugins: Sequence[TransformPlugin]) -> Found | None:
    class_name, _, side = name.partition("$")
    for plugin in plugins:
        if plugin.sides:
            found = next((one for one in plugin.sides if one.value == side), None)
            if found is not None and class_name == plugin.class_name:
                return Found(plugin, found)
        elif name in (plugin.class_name, _simple_name(plugin.class_name)):
            return Found(plugin)
    return None


def find_predicate(name: str) -> PredicatePlugin | None:
    """By full class name or simple name."""
    names = {alias: one for one in ALL_PREDICATES for alias in (one.class_name, _simple_name(one.class_name))}
    return names.get(name)


def _simple_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]
