"""Client settings, and the translation of the client's errors into ours."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from icestream.api.errors import Fenced, SourceUnavailable

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 15.0
"""How long a request to Kafka may take before it counts as unavailable."""

_CONNECTION = ("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
_CONNECTION_PREFIXES = ("ssl.", "sasl.")

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
}


def client_settings(worker: Mapping[str, str], override: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every client of this worker needs to reach the cluster, in librdkafka's names."""
    shared = {
        key: value
        for key, value in worker.items()
        if key in _CONNECTION or key.startswith(_CONNECTION_PREFIXES)
    }
    shared.setdefault("bootstrap.servers", "localhost:9092")
    return {**shared, **(override or {})}


@contextmanager
def kafka_errors(doing: str) -> Iterator[None]:
    """Raise our errors instead of the client's."""
    try:
        yield
    except KafkaException as error:
        cause = error.args[0] if error.args else error
        if isinstance(cause, KafkaError) and cause.code() in _FENCED:
            raise Fenced(f"{doing}: another manager of this job is alive ({cause.str()})") from error
        text = cause.str() if isinstance(cause, KafkaError) else str(cause)
        raise SourceUnavailable(f"{doing}: {text}") from error


def log_client_error(error: KafkaError) -> None:
    """librdkafka reconnects by itself; what it meets on the way is worth a line, not a failure."""
    _log.debug("kafka client: %s", error.str())


def quiet(settings: Mapping[str, str | int | bool]) -> dict[str, Any]:
    """The settings with the client's own logging sent to ours."""
    return {**settings, "error_cb": log_client_error, "logger": _log, "log_level": 3}
