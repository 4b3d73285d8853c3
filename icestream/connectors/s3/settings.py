"""What a config of the S3 sink says: its values, its place, and what of it decides about objects. Read by
`plugin`, `target` and `stores/opening`; `layout` tells what formats, partitioners and names make of it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from icestream.api.config import Config, Type
from icestream.connectors.s3 import clouds
from icestream.connectors.s3.keys import PROVIDER, S3_SINK, SEPARATOR, definition

_NOT_OF_LAYOUT: Final = (
    *("aws.", PROVIDER, "s3.sse", "s3.proxy", "s3.ssea", "store.url", "icestream.", "gcs.", "azblob."),
)


def is_folder(config: Config) -> bool:
    """Whether the objects are files of this machine."""
    return config.get("store.url", "").strip().lower().startswith("file:")


def folder_of(config: Config) -> str:
    """The folder that stands for the bucket."""
    parts = urlsplit(config["store.url"].strip())
    return f"{parts.path.rstrip('/')}/{config.get('s3.bucket.name', '').strip()}"


def place(config: Config) -> str:
    """Bucket and store in one text, without any login."""
    if is_folder(config):
        return f"file://{folder_of(config)}"
    if clouds.is_cloud(config):
        return clouds.place_of(config).name
    bucket, url = config.get("s3.bucket.name", "").strip(), config.get("store.url", "").strip()
    return f"s3://{bucket} at {urlsplit(url).netloc.rpartition('@')[2]}" if url else f"s3://{bucket}"


def aws_address(service: str, region: str) -> str:
    """Where a service of Amazon is; the regions of China have a domain of their own."""
    return f"https://{service}.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def layout_config(config: Config) -> dict[str, str]:
    """What of a config decides about the names and contents of objects; no secrets."""
    kept = {
        setting.name
        for setting in S3_SINK.settings
        if setting.type is not Type.PASSWORD and not setting.name.startswith(_NOT_OF_LAYOUT)
    }
    bucket = {clouds.BUCKET: clouds.place_of(config).bucket} if clouds.is_cloud(config) else {}
    return {key: value for key, value in config.items() if key in kept} | bucket


def parsed(config: Config) -> dict[str, Any]:
    # A separator may be blank.
    return definition(config).parse(config) | {SEPARATOR: config.get(SEPARATOR)}
