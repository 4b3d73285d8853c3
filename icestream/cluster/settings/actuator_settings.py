"""Whether and where a worker has Spring Boot's actuator endpoints: its settings, checked and understood. Part
of the worker's config; `rest/actuator/` does what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.errors import Problem
from icestream.cluster.settings.rest_settings import Listener, parsed_listeners
from icestream.cluster.settings.rest_tls import Tls, read_tls

LISTENERS: Final = "icestream.actuator.listeners"
_DETAILS: Final = "icestream.actuator.health.details"
_ENV: Final = "icestream.actuator.env.enabled"

ACTUATOR: Final = ConfigDef(
    (
        Setting(
            LISTENERS,
            Type.LIST,
            None,
            "Where /actuator listens, such as http://:8081; nobody logs in there. Absent: nowhere.",
            importance="LOW",
        ),
        Setting(
            _DETAILS,
            Type.STRING,
            "never",
            "Whether /actuator/health shows components and details, which have addresses: never or always.",
            importance="LOW",
            choices=("never", "always"),
        ),
        Setting(
            _ENV,
            Type.BOOLEAN,
            False,
            "Whether /actuator/env tells the names of variables and settings; it never tells their values.",
            importance="LOW",
        ),
    )
)


@dataclass(frozen=True)
class ActuatorConfig:
    listeners: tuple[Listener, ...] = ()
    """None: there is no actuator."""
    tls: Tls | None = None
    """That of REST, where one of them has https."""
    shows_details: bool = False
    has_env: bool = False


def parse_actuator(raw: Config, problems: list[Problem]) -> ActuatorConfig:
    """What is wrong is added to the problems; the values are those of a config without any."""
    listeners = parsed_listeners(LISTENERS, raw.get(LISTENERS, ""), problems)
    has_https = any(one.scheme == "https" for one in listeners)
    return ActuatorConfig(
        listeners,
        read_tls(raw, "listeners.https.", problems, []) if has_https else None,
        shows_details=raw.get(_DETAILS, "never").strip() == "always",
        has_env=raw.get(_ENV, "false").strip().lower() == "true",
    )
