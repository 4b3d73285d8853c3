"""Which client settings a connector may override: `connector.client.config.override.policy` of the worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
_PREFIXES: Final = ("producer.override.", "consumer.override.", "admin.override.")
_NAMES: Final = ("All", "None", "Principal", "Allowlist")
_CLASS: Final = "ConnectorClientConfigOverridePolicy"
_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_OF_THE_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


@dataclass(frozen=True)
class OverridePolicy:
    """What is allowed; `allowed` is None where everything is."""

    name: str
    allowed: frozenset[str] | None

    def problems(self, config: Config, own_prefixes: Collection[str] = ()) -> list[Problem]:
        """One for each override of a connector that the policy forbids."""
        return [
            Problem(
                key,
                f"The '{self.name}' policy does not allow '{setting}' to be overridden in the connector "
                "configuration.",
            )
            for key, setting in _overrides(config, own_prefixes).items()
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


def policy_problems(worker: Config, config: Config, own_prefixes: Collection[str] = ()) -> list[Problem]:
    """What the worker's policy forbids in a connector's config.

    Under a prefix of its own, a connector is often told the worker's settings again, which changes nothing.
    """
    same = {
        key
        for prefix in own_prefixes
        for key, value in config.items()
        if key.startswith(prefix) and worker.get(key.removeprefix(prefix)) == value
    }
    return override_policy_from(worker).problems(
        {key: value for key, value in config.items() if key not in same}, own_prefixes
    )


def _overrides(config: Config, own_prefixes: Collection[str]) -> dict[str, str]:
    prefixes = (*_PREFIXES, *own_prefixes)
    return {key: key.removeprefix(prefix) for key in config for prefix in prefixes if key.startswith(prefix)}
