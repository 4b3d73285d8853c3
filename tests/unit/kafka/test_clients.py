"""The client's errors become ours, also those that are only silence."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from icestream.api.errors import ConfigError, FatalError, Fenced, SourceUnavailable
from icestream.kafka.clients import client_settings, kafka_errors, log_client_error, raise_if_refused


def test_silence_is_an_outage() -> None:
    with pytest.raises(SourceUnavailable, match=r"asking: Kafka did not answer"), kafka_errors("asking"):
        raise TimeoutError


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (KafkaError._FENCED, Fenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (KafkaError._INVALID_ARG, ConfigError),
        (KafkaError.TOPIC_EXCEPTION, FatalError),
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


REFUSED = KafkaError(
    KafkaError._AUTHENTICATION, "SASL authentication error: no (after 3ms in state AUTH_REQ)"
)
UNTRUSTED = KafkaError(KafkaError._SSL, "SSL handshake failed: certificate verify failed: unknown CA")
NO_TOKEN = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: away")
REFUSED_PORT = KafkaError(KafkaError._TRANSPORT, "a:1: Connect failed: Connection refused")


@pytest.mark.parametrize(
    ("met", "ours", "told"),
    [
        (REFUSED, ConfigError, r"Kafka refuses the login; check sasl\.jaas\.config .*: no\)$"),
        (UNTRUSTED, ConfigError, r"the broker's certificate is not trusted; check ssl\.truststore"),
        (NO_TOKEN, SourceUnavailable, r"asking: Failed to acquire SASL OAUTHBEARER token: away"),
        (REFUSED_PORT, SourceUnavailable, r"asking: a:1: Connect failed: Connection refused"),
    ],
)
def test_silence_is_explained_by_what_the_client_met(
    met: KafkaError, ours: type[Exception], told: str
) -> None:
    with pytest.raises(ours, match=told), kafka_errors("asking", lambda _: log_client_error(met)):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_what_was_met_before_explains_nothing() -> None:
    with kafka_errors("asking"):
        log_client_error(REFUSED)
    log_client_error(REFUSED)
    with pytest.raises(SourceUnavailable, match="did not answer"), kafka_errors("asking"):
        raise TimeoutError


def test_another_error_is_not_explained_away() -> None:
    with pytest.raises(Fenced), kafka_errors("asking"):
        log_client_error(REFUSED)
        raise KafkaException(KafkaError(KafkaError._FENCED))


def test_a_reader_need_not_wait_for_the_silence_to_end() -> None:
    with pytest.raises(ConfigError, match="reading t-0: Kafka refuses"), kafka_errors("reading"):
        log_client_error(REFUSED)
        raise_if_refused("reading t-0")


def test_settings_come_from_worker_role_and_connector_in_this_order() -> None:
    worker = {
        "bootstrap.servers": "a:1",
        "consumer.fetch.min.bytes": "1",
        "consumer.fetch.max.bytes": "5000000",
        "group.id": "g",
    }
    settings = client_settings(worker, "consumer", {"fetch.min.bytes": "2", "max.poll.records": "9"})
    assert settings == {"bootstrap.servers": "a:1", "fetch.min.bytes": "2", "fetch.max.bytes": "5000000"}
