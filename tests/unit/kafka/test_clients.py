"""The client's errors become ours, also those that are only silence."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from icestream.api.errors import ConfigError, Fenced, SourceUnavailable
from icestream.kafka.clients import client_settings, kafka_errors


def test_silence_is_an_outage() -> None:
    with pytest.raises(SourceUnavailable, match=r"asking: Kafka did not answer"), kafka_errors("asking"):
        raise TimeoutError


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (KafkaError._FENCED, Fenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (KafkaError._INVALID_ARG, ConfigError),
        (KafkaError._TRANSPORT, SourceUnavailable),
    ],
)
def test_errors_are_told_apart_by_code(code: int, ours: type[Exception]) -> None:
    with pytest.raises(ours), kafka_errors("asking"):
        raise KafkaException(KafkaError(code))


def test_fencing_is_recognised_inside_a_callback() -> None:
    with pytest.raises(Fenced), kafka_errors("sending"):
        try:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        except KafkaException as cause:
            raise SystemError("callback") from cause


def test_settings_come_from_worker_role_and_connector_in_this_order() -> None:
    worker = {
        "bootstrap.servers": "a:1",
        "consumer.fetch.min.bytes": "1",
        "consumer.fetch.max.bytes": "5000000",
        "group.id": "g",
    }
    settings = client_settings(worker, "consumer", {"fetch.min.bytes": "2", "max.poll.records": "9"})
    assert settings == {"bootstrap.servers": "a:1", "fetch.min.bytes": "2", "fetch.max.bytes": "5000000"}
