"""Which hosts connectors may reach: `icestream.allowed.hosts` of the worker; without it, all.

Called by `validation` before anything is opened. What the worker's own config names is always allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config, Setting, Type
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.api.errors import Problem
from icestream.cluster.configs.limits import READ_TWO_WAYS
from icestream.kafka import jaas

ALLOWED_HOSTS: Final = Setting(
    "icestream.allowed.hosts",
    Type.LIST,
    [],
    "The hosts that connectors may reach (Kafka overrides, registries, catalogs, object stores), as names, "
    "addresses or *.domain; all if it is not set.",
)

_OF_CLIENTS: Final = ("bootstrap.servers", "sasl.oauthbearer.token.endpoint.url")
_ADDRESS_KEYS: Final = frozenset(
    {
        *(f"{role}.override.{key}" for role in ("producer", "consumer", "admin") for key in _OF_CLIENTS),
        *(f"{kind}.converter.schema.registry.url" for kind in CONVERTER_KINDS),
        "bootstrap.servers",
    }
)
_JAAS: Final = ".sasl.jaas.config"
_IN_JAAS: Final = re.compile(r"https?://[^\s\"';]+")
_LOCAL_DATABASES: Final = ("sqlite:", "file:")


def host_problems(config: Config, worker: Config, plugin: ConnectorPlugin) -> list[Problem]:
    """One for each address whose host is not on the worker's list."""
    allowed = [one.lower() for one in ALLOWED_HOSTS.parse(worker.get(ALLOWED_HOSTS.name, ""))]
    if not allowed:
        return []
    of_plugin = (*plugin.address_keys, *(p + key for p in plugin.client_prefixes for key in _OF_CLIENTS))
    keys = _ADDRESS_KEYS.union(of_plugin)
    own = {host for _, host in _hosts(worker, keys)}
    reached = [
        *_hosts(config, keys),
        *((key, _host(address)) for key, address in plugin.place_addresses(config) if address),
    ]
    return [
        Problem(
            key,
            f"'{key}' leads to '{host}', which is not among the hosts that connectors of this worker may "
            f"reach; use one that is, or add it to {ALLOWED_HOSTS.name} of the worker",
        )
        for key, host in reached
        if host not in own and not any(_is_meant(host, one) for one in allowed)
    ]


def _is_meant(host: str, entry: str) -> bool:
    return host.endswith(entry[1:]) if entry.startswith("*.") else host == entry


def _hosts(config: Config, keys: Collection[str]) -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        if key in keys:
            for address in value.split(","):
                if host := _host(address.strip()):
                    yield key, host
        elif key.endswith(_JAAS):
            yield from ((key, _host(found)) for found in _IN_JAAS.findall(_options(value)))


def _options(login: str) -> str:
    """What the options of a login say, one on a line: in the text itself, characters may be escaped."""
    try:
        return "\n".join(jaas.parse(login).options.values())
    except ValueError:
        return login


def _host(address: str) -> str:
    """The host of an address with or without scheme; empty for files."""
    bare = address.removeprefix("jdbc:")
    if bare.startswith(_LOCAL_DATABASES) or not bare:
        return ""
    if READ_TWO_WAYS.match(bare):
        return bare
    try:
        return (urlsplit(bare if "://" in bare else f"//{bare}").hostname or "").lower()
    except ValueError:
        return bare
