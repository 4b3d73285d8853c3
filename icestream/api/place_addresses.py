"""Which host a folder or a bucket is at, for `icestream.allowed.hosts`; plugins ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

_OWN_HOSTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "https://s3.amazonaws.com"),
    **dict.fromkeys(("gs", "gcs"), "https://storage.googleapis.com"),
    "oss": "https://aliyuncs.com",
}
"""Where a bucket is of which nothing but the name is known: `s3://name` has no host in it."""


def place_address(place: str, *, has_endpoint: bool) -> str:
    """The address that whoever opens the place goes to; empty for a folder of this machine, and for a bucket
    whose endpoint the config names, which is an address by itself."""
    scheme = urlsplit(place.strip()).scheme.lower() if "://" in place else ""
    if scheme in ("", "file"):
        return ""
    if scheme in _OWN_HOSTS:
        return "" if has_endpoint else _OWN_HOSTS[scheme]
    return place.strip()
