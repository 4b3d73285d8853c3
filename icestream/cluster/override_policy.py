"""Which client settings a connector may override: `connector.client.config.override.policy` of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.kafka.clients import OF_ICEBERG

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
_PREFIXES: Final = ("producer.override.", "consumer.override.", "admin.override.", OF_ICEBERG)
_NAMES: Final = ("All", "None", "Principal", "Allowlist")
_CLASS: Final = "ConnectorClientConfigOverridePolicy"
_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_OF_THE_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


@dataclass(frozen=True)
class OverridePolicy:
    """What is allowed; `allowed` is None where everything is."""

    name: str
    allowed: frozenset[str] | None

    def problems(self, config: Config) -> list[Problem]:
        """One for each override of a connector that the policy forbids."""
        return [
            Problem(
                key,
                f"The '{self.name}' policy does not allow '{setting}' to be overridden in the connector "
                "configuration.",
            )
            for key, setting in _overrides(config).items()
            if self.allowed is not None and setting not in self.allowed
        ]


def override_policy_from(worker: Config) -> OverridePolicy:
    """The policy that a worker's config names, by alias or class; raises ConfigError."""
    given = worker.get(POLICY, "").strip() or "All"
    name = given.removeprefix(_PACKAGE).removesuffix(_CLASS)
    listed = frozenset(key.strip() for key in worker.get(ALLOWLIST, "").split(",") if key.strip())
    allowed: Mapping[str, frozenset[str] | None] = {
        "All": None,
        "None": frozenset(),
        "Principal": _OF_THE_PRINCIPAL,
        "Allowlist": listed,
    }
    if name not in allowed:
        raise ConfigError(
            [
                Problem(
                    POLICY,
                    f"'{POLICY}={given}' is a Java class that cannot run here; use {', '.join(_NAMES)}",
                )
            ]
        )
    return OverridePolicy(name, allowed[name])


def policy_problems(worker: Config, config: Config) -> list[Problem]:
    """What the worker's policy forbids in a connector's config.

    The Iceberg sink is often told the worker's own settings again, which changes nothing.
    """
    same = {
        key
        for key, value in config.items()
        if key.startswith(OF_ICEBERG) and worker.get(key.removeprefix(OF_ICEBERG)) == value
    }
    return override_policy_from(worker).problems(
        {key: value for key, value in config.items() if key not in same}
    )


def _overrides(config: Config) -> dict[str, str]:
    return {key: key.removeprefix(prefix) for key in config for prefix in _PREFIXES if key.startswith(prefix)}
