"""Where the catalog of a config is, as log lines and statuses may show it: never with a login. Read at every
start of a connector, so PyIceberg is not imported."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config
from icestream.connectors.iceberg.catalogs.hadoop_settings import with_hadoop
from icestream.connectors.iceberg.catalogs.keys import CLASSES, TYPES

_OF_AWS: Final = {"glue": "Glue", "dynamodb": "DynamoDB"}


def catalog_place(config: Config) -> str:
    """`the catalog at host:8181`, or `Glue of AWS`; empty if the config does not say."""
    java = with_hadoop(config)
    kind = CLASSES.get(java.get("catalog-impl", "")) or TYPES.get(java.get("type", "").lower(), "")
    place = java.get(f"{kind}.endpoint" if kind in _OF_AWS else "uri", "").strip()
    if kind in _OF_AWS:
        return f"{_OF_AWS[kind]} at {address(place)}" if place else f"{_OF_AWS[kind]} of AWS"
    return f"the catalog at {address(place)}" if place else ""


def address(uri: str) -> str:
    """Host and port, or the path."""
    parts = urlsplit(uri.removeprefix("jdbc:"))
    # SQLAlchemy's sqlite:////tmp/x has one slash more than the path.
    return parts.netloc.rpartition("@")[2] or parts.path.replace("//", "/", 1)
