"""All classes that configs may name, in the order of Kafka Connect's `/connector-plugins`."""

from __future__ import annotations

from dataclasses import dataclass

from icestream.cluster.converter_plugins import CONVERTERS
from icestream.plugins import installed
from icestream.transforms.catalog import ALL_PREDICATES, all_transforms


@dataclass(frozen=True)
class ListedPlugin:
    class_name: str
    kind: str
    version: str


def connector_plugins() -> list[ListedPlugin]:
    """Sinks, then sources, each by name."""
    known = installed().connectors
    return [
        *_sorted("sink", {one.class_name: one.version for one in known if not one.is_source}),
        *_sorted("source", {one.class_name: one.version for one in known if one.is_source}),
    ]


def all_plugins() -> list[ListedPlugin]:
    """Connectors, transforms, predicates, converters of records, converters of headers."""
    transforms = {name: plugin.version for plugin in all_transforms() for name in plugin.class_names}
    return [
        *connector_plugins(),
        *_sorted("transformation", transforms),
        *_sorted("predicate", {one.class_name: one.version for one in ALL_PREDICATES}),
        *_sorted("converter", {one.class_name: one.version for one in CONVERTERS if one.is_for_records}),
        *_sorted(
            "header_converter", {one.class_name: one.version for one in CONVERTERS if one.is_for_headers}
        ),
    ]


def _sorted(kind: str, versions: dict[str, str]) -> list[ListedPlugin]:
    return [ListedPlugin(name, kind, versions[name]) for name in sorted(versions)]
