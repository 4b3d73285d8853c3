"""Client settings, and the translation of the client's errors into ours."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from icestream.api.config import subset
from icestream.api.errors import ConfigError, Fenced, Problem, SourceUnavailable

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 15.0
"""How long a request to Kafka may take before it counts as unavailable."""

_CONNECTION = ("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
_CONNECTION_PREFIXES = ("ssl.", "sasl.")

_DECIDED_BY_US = {
    # Where a slice starts, how much is read at a time and when offsets are committed: the job's business.
    "auto.offset.reset",
    "enable.auto.commit",
    "group.id",
    "isolation.level",
    "max.poll.records",
    "transactional.id",
}

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
}


def client_settings(
    worker: Mapping[str, str], role: str | None = None, override: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a client needs: the worker's connection and `<role>.*` keys, and the connector's overrides."""
    shared = {
        key: value
        for key, value in worker.items()
        if key in _CONNECTION or key.startswith(_CONNECTION_PREFIXES)
    }
    shared.setdefault("bootstrap.servers", "localhost:9092")
    own = subset(worker, f"{role}.") if role else {}
    merged = {**shared, **own, **(override or {})}
    return {key: value for key, value in merged.items() if key not in _DECIDED_BY_US}


@contextmanager
def kafka_errors(doing: str) -> Iterator[None]:
    """Raise our errors instead of the client's."""
    try:
        yield
    except TimeoutError as error:
        raise SourceUnavailable(
            f"{doing}: Kafka did not answer in {ANSWER_SECONDS:.0f} s; check bootstrap.servers and the broker"
        ) from error
    except (KafkaException, SystemError) as error:
        # Inside its callbacks the client tells a fatal error, such as fencing, as the cause of a SystemError.
        told = error.__cause__ if isinstance(error, SystemError) else error
        if not isinstance(told, KafkaException):
            raise
        cause = told.args[0] if told.args else told
        if isinstance(cause, KafkaError) and cause.code() in _FENCED:
            raise Fenced(f"{doing}: another manager of this job is alive ({cause.str()})") from error
        if isinstance(cause, KafkaError) and cause.code() == KafkaError._INVALID_ARG:
            raise ConfigError(
                [Problem("bootstrap.servers", f"{doing}: Kafka's client refuses a setting: {cause.str()}")]
            ) from error
        text = cause.str() if isinstance(cause, KafkaError) else str(cause)
        raise SourceUnavailable(f"{doing}: {text}") from error


def log_client_error(error: KafkaError) -> None:
    """librdkafka reconnects by itself; what it meets on the way is worth a line, not a failure."""
    _log.debug("kafka client: %s", error.str())


def quiet(settings: Mapping[str, str | int | bool]) -> dict[str, Any]:
    """The settings with the client's own log lines turned off: what it meets comes through the callback."""
    return {**settings, "error_cb": log_client_error, "logger": _log, "log_level": 2}
