"""Who may ask the console for what. Everything here is a list of what is allowed.

Browsers send passwords by themselves, and many workers ask for none: so a request to the API must show that a
page of ours sent it. A foreign page cannot set our header without asking first (a preflight), which nobody
here answers; `Origin` and `Sec-Fetch-Site` are the second and third fence.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from icestream.cluster.settings.console_settings import HOSTS, Level
from icestream.cluster.settings.rest_settings import RestConfig

HEADER: Final = "x-icestream-console"
_VALUE: Final = "1"
_AUTHORITY: Final = re.compile(r"([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")


def page_refusal(headers: Mapping[str, str], config: RestConfig, own_names: Sequence[str] = ()) -> str | None:
    """Why the page is not given; None if it is."""
    if config.credentials is None and not is_known_host(headers.get("host", ""), config, own_names):
        # Whoever owns a name can point it at this worker, and then its page is of our origin.
        shown = headers.get("host", "")[:200]
        return (
            f"The console does not know the host '{shown}'; open it by its address, or add the name to "
            f"'{HOSTS}'"
        )
    return None


def api_refusal(headers: Mapping[str, str], config: RestConfig, own_names: Sequence[str] = ()) -> str | None:
    """Why a request to the API is refused, whoever sent it; None if it is not."""
    if headers.get(HEADER) != _VALUE:
        return "The console's API takes requests of the console only; send the header X-Icestream-Console: 1"
    origin = headers.get("origin")
    if origin is not None and not _is_own_origin(origin, headers.get("host", ""), config):
        return f"The console takes no requests from pages of '{origin[:200]}'"
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return "The console takes no requests from pages of other sites"
    return page_refusal(headers, config, own_names)


def level_refusal(needed: Level, allowed: Level) -> str | None:
    if allowed >= needed:
        return None
    return (
        f"This needs the level '{needed.name.lower()}', and the console has '{allowed.name.lower()}'; "
        "the worker's config sets it with 'icestream.console'"
    )


def own_names_of(config: RestConfig) -> tuple[str, ...]:
    """Names that are nobody else's: where we listen, what we tell others, and this machine's."""
    listeners = (*config.listeners, *(config.console.listeners or ()))
    return (*(it.host for it in listeners), config.advertised_host, socket.gethostname())


def is_known_host(host: str, config: RestConfig, own_names: Sequence[str] = ()) -> bool:
    parts = _AUTHORITY.fullmatch(host)
    if parts is None:
        return False
    name = parts[1].lower().rstrip(".")
    if _is_address(name) or name == "localhost":
        return True
    return name in {own.lower() for own in own_names if own} or _is_listed(host, config)


def _is_own_origin(origin: str, host: str, config: RestConfig) -> bool:
    """By its authority alone: a proxy may have taken the TLS away."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    if not _AUTHORITY.fullmatch(parts.netloc):
        return False
    # A proxy may name itself to the browser and us to us.
    return parts.netloc.lower() == host.lower() or _is_listed(parts.netloc, config)


def _is_listed(authority: str, config: RestConfig) -> bool:
    """An entry with a port means that port, one without any."""
    lowered = authority.lower()
    without_port = re.sub(r":[0-9]+$", "", lowered)
    return any(entry.lower() in (lowered, without_port) for entry in config.console.hosts)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
