"""`/actuator/env`: which environment variables and settings there are. Their values are never told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "******"
_PROFILES: Final[dict[str, Any]] = {"activeProfiles": [], "defaultProfiles": ["default"]}
SYSTEM: Final = "systemEnvironment"
WORKER: Final = "workerConfig"
_ORIGINS: Final = {SYSTEM: "System Environment Property", WORKER: "Worker Setting"}

Sources = Mapping[str, Mapping[str, str]]


def env(sources: Sources) -> dict[str, Any]:
    return {
        **_PROFILES,
        "propertySources": [
            {"name": name, "properties": {key: _property(name, key) for key in sorted(given)}}
            for name, given in sources.items()
        ],
    }


def property_of(sources: Sources, key: str) -> dict[str, Any] | None:
    """One of them, where it is, and where it would be; None if nobody has it."""
    having = [name for name, given in sources.items() if key in given]
    if not having:
        return None
    return {
        "property": {"source": having[0], "value": HIDDEN},
        **_PROFILES,
        "propertySources": [
            {"name": name, **({"property": _property(name, key)} if name in having else {})}
            for name in sources
        ],
    }


def _property(source: str, key: str) -> dict[str, str]:
    return {"value": HIDDEN, "origin": f'{_ORIGINS[source]} "{key}"'}
