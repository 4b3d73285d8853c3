"""How patient a connector is with systems that are away, from its config and the worker's. Asked by the
reconciler of the connector at each start.

The connector's `icestream.retry.*` and `icestream.circuit.*` win, then the connector's own words for the same
(`max.retries`, `retry.backoff.ms`), then the worker's keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from icestream.api.config import Config
from icestream.api.connector import Retries
from icestream.api.connector_settings import FRAMEWORK, RETRIES
from icestream.api.errors import NotFoundError
from icestream.plugins import find_connector
from icestream.resilience.backoff import LONGEST_WAIT, RetryLimits
from icestream.resilience.breaker import CircuitLimits

_LEAST_WAIT: Final = 0.1
_LEAST_FIRST: Final = 0.001
_MOST: Final = "icestream.retry.max"
_FIRST: Final = "icestream.retry.backoff.ms"
_LONGEST: Final = "icestream.retry.backoff.max.ms"
_TIMEOUT: Final = "errors.retry.timeout"
_DELAY: Final = "errors.retry.delay.max.ms"


@dataclass(frozen=True)
class RetrySettings:
    destination: str = ""
    """Empty: the connector has a circuit breaker of its own."""
    limits: RetryLimits = field(default_factory=RetryLimits)
    circuit: CircuitLimits = field(default_factory=CircuitLimits)


def retry_settings(config: Config, worker: Config) -> RetrySettings:
    """Of a resolved config, which is valid but may be of a plugin that has gone."""
    destination, said = _of_plugin(config)
    own, workers = _retry_keys(config), _retry_keys(worker)
    values = RETRIES.parse(workers | own)
    most = values[_MOST]
    if _MOST not in own and said.most is not None:
        most = said.most
    first = values[_FIRST] / 1000
    if _FIRST not in own and said.first_seconds is not None:
        first = said.first_seconds
    errors = FRAMEWORK.parse({**config, "name": config.get("name", "connector")})
    longest = values[_LONGEST] / 1000
    if _LONGEST not in own and config.get(_DELAY, "").strip():
        longest = max(errors[_DELAY] / 1000, _LEAST_WAIT)
    limits = RetryLimits(
        # Some configs say 0, which would be no wait at all.
        first=min(max(first, _LEAST_FIRST), LONGEST_WAIT),
        longest=min(max(longest, first) if _DELAY not in config else longest, LONGEST_WAIT),
        seconds=_patience(errors[_TIMEOUT]),
        outage_seconds=_patience(errors[_TIMEOUT]) if errors[_TIMEOUT] > 0 else math.inf,
        most=most if most >= 0 else None,
    )
    open_seconds = min(values["icestream.circuit.open.ms"] / 1000, LONGEST_WAIT)
    circuit = CircuitLimits(values["icestream.circuit.failures"], open_seconds)
    return RetrySettings(destination, limits, circuit)


def _patience(timeout_ms: int) -> float:
    """Never shorter than without the key: Java's clients wait for a broker that restarts whatever
    `errors.retry.timeout` says, whose default of 0 means one attempt."""
    return math.inf if timeout_ms < 0 else max(timeout_ms / 1000, RetryLimits.seconds)


def _retry_keys(config: Config) -> dict[str, str]:
    return {name: config[name] for name in RETRIES.names if config.get(name, "").strip()}


def _of_plugin(config: Config) -> tuple[str, Retries]:
    try:
        plugin = find_connector(config.get("connector.class", "")).plugin
    except NotFoundError:
        return "", Retries()
    try:
        return plugin.destination(config), plugin.retries(config)
    except Exception:  # code of another package; whoever opens the destination says what is wrong
        return "", Retries()
