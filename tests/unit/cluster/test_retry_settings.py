"""How patient a connector is: its own keys, its plugin's words, the worker's keys."""

from __future__ import annotations

import math
import threading

import pytest

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin, Retries
from icestream.cluster.restarts import Policy
from icestream.cluster.settings import retry_settings as module
from icestream.cluster.settings.retry_settings import RetrySettings, retry_settings
from icestream.resilience.backoff import LONGEST_WAIT, RetryLimits
from icestream.resilience.breaker import CircuitLimits

CONFIG = {"name": "n", "connector.class": "FileStreamSink"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, RetryLimits(0.2, 15, 600, math.inf)),
        ({"errors.retry.timeout": "0"}, RetryLimits(0.2, 15, 600, math.inf)),
        ({"errors.retry.timeout": "60000"}, RetryLimits(0.2, 15, 600, 600)),
        (
            {"errors.retry.timeout": "3600000", "errors.retry.delay.max.ms": "60000"},
            RetryLimits(0.2, 60, 3600, 3600),
        ),
        (
            {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "500"},
            RetryLimits(0.2, 0.5, math.inf, math.inf),
        ),
        ({"icestream.retry.max": "7"}, RetryLimits(most=7)),
        ({"icestream.retry.max": "0"}, RetryLimits(most=0)),
        ({"icestream.retry.backoff.ms": "50"}, RetryLimits(first=0.05)),
        ({"icestream.retry.backoff.ms": "60000"}, RetryLimits(first=60, longest=60)),
        (
            {"icestream.retry.backoff.max.ms": "2000", "errors.retry.delay.max.ms": "60000"},
            RetryLimits(longest=2),
        ),
    ],
)
def test_the_keys_of_a_connector(keys: dict[str, str], expected: RetryLimits) -> None:
    assert retry_settings({**CONFIG, **keys}, {}).limits == expected


def test_the_circuit_breaker_has_its_keys() -> None:
    keys = {"icestream.circuit.failures": "2", "icestream.circuit.open.ms": "1500"}
    assert retry_settings({**CONFIG, **keys}, {}).circuit == CircuitLimits(2, 1.5)
    assert retry_settings(CONFIG, keys).circuit == CircuitLimits(2, 1.5)


class Wordy(ConnectorPlugin):
    def destination(self, config: Config) -> str:
        return f"s3://{config['bucket']}"

    def retries(self, config: Config) -> Retries:
        return Retries(most=int(config["max.retries"]), first_seconds=3.0)


def test_the_connectors_own_words_are_between_its_keys_and_the_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Found:
        plugin = Wordy()

    monkeypatch.setattr(module, "find_connector", lambda name: Found())
    config = {**CONFIG, "bucket": "lake", "max.retries": "10"}
    workers = {
        "icestream.retry.max": "99",
        "icestream.retry.backoff.ms": "99",
        "icestream.circuit.failures": "9",
    }
    found = retry_settings(config, workers)
    assert found.destination == "s3://lake"
    assert (found.limits.most, found.limits.first, found.circuit.failures) == (10, 3.0, 9)
    found = retry_settings(
        {**config, "icestream.retry.max": "-1", "icestream.retry.backoff.ms": "5"}, workers
    )
    assert (found.limits.most, found.limits.first) == (None, 0.005)


def test_a_class_that_nobody_has_is_patient_as_usual() -> None:
    assert retry_settings({"connector.class": "gone"}, {}) == RetrySettings()


def test_no_number_is_a_time_that_a_machine_cannot_wait() -> None:
    longest = str(2**63 - 1)
    keys = ("icestream.retry.backoff.ms", "icestream.retry.backoff.max.ms", "icestream.circuit.open.ms")
    found = retry_settings({**CONFIG, **dict.fromkeys(keys, longest)}, {})
    delays = dict.fromkeys(("icestream.restart.delay.ms", "icestream.restart.delay.max.ms"), longest)
    waits = (found.limits.first, found.limits.longest, found.circuit.open_seconds, Policy.of(delays).wait(1))
    assert max(waits) <= LONGEST_WAIT <= threading.TIMEOUT_MAX
