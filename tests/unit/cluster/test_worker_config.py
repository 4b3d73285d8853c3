"""The worker's config file."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.worker_config import Listener, parse_worker_config

GOOD = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "offset.storage.file.filename": "/tmp/connect.offsets",
}


def test_a_small_file_is_enough() -> None:
    config = parse_worker_config(GOOD)
    assert config.listener == Listener("127.0.0.1", 8083)
    assert config.state_file == Path("/tmp/connect.offsets.icestream.json")
    assert config.worker_id(8083) == "127.0.0.1:8083"
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("keys", "listener"),
    [
        ({"listeners": "http://127.0.0.1:9000"}, Listener("127.0.0.1", 9000)),
        ({"listeners": "http://:8084"}, Listener("0.0.0.0", 8084)),
        ({"listeners": "HTTP://localhost:0"}, Listener("localhost", 0)),
        ({"rest.port": "8099"}, Listener("127.0.0.1", 8099)),
        ({"rest.host.name": "localhost", "rest.port": "1"}, Listener("localhost", 1)),
    ],
)
def test_listens_where_it_is_told(keys: dict[str, str], listener: Listener) -> None:
    assert parse_worker_config({**GOOD, **keys}).listener == listener


def test_spark_and_client_settings_pass_as_they_are() -> None:
    more = {"spark.master": "local[2]", "consumer.max.poll.records": "5", "sasl.mechanism": "PLAIN"}
    config = parse_worker_config({**GOOD, **more})
    assert {key: config.raw[key] for key in more} == more
    assert config.warnings == ()


def test_what_has_no_effect_is_said() -> None:
    config = parse_worker_config({**GOOD, "plugin.path": "/usr/share/java", "group.id": "g", "my.note": "x"})
    assert config.warnings == (
        "'my.note' is not a known configuration and has no effect",
        "'plugin.path' has no effect: plugins are Python packages",
        "'group.id' has no effect: this is a standalone worker",
    )


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"bootstrap.server": "x"}, "did you mean 'bootstrap.servers'?"),
        ({"listeners": "https://:8443"}, "https is not supported by this version"),
        ({"listeners": "http://a:1,http://b:2"}, "has 2 addresses"),
        ({"listeners": "localhost:8083"}, "is not an address; write http://host:port"),
        ({"listeners": "http://localhost:port"}, "is not an address; write http://host:port"),
        ({"config.providers": "file"}, "'config.providers' is not supported by this version"),
        ({"rest.port": "x"}, "Invalid value x for configuration rest.port"),
        (
            {"offset.storage.file.filename": ""},
            'Missing required configuration "offset.storage.file.filename"',
        ),
    ],
)
def test_refuses_with_the_reason(keys: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_worker_config({**GOOD, **keys})
    assert reason in str(caught.value)


def test_converters_are_required() -> None:
    with pytest.raises(ConfigError, match=r'"key\.converter".*"value\.converter"'):
        parse_worker_config({"offset.storage.file.filename": "x"})


def test_our_own_state_file_wins() -> None:
    assert parse_worker_config({**GOOD, "icestream.state.file": "/s.json"}).state_file == Path("/s.json")


@pytest.mark.parametrize(
    "key", ["sasl.jaas.config", "ssl.truststore.location", "consumer.ssl.keystore.password"]
)
def test_settings_of_the_java_client_are_refused_with_the_native_names(key: str) -> None:
    with pytest.raises(ConfigError, match=r"use librdkafka's sasl\.username"):
        parse_worker_config({**GOOD, key: "x"})


def test_client_keys_that_go_nowhere_are_told() -> None:
    warnings = parse_worker_config({**GOOD, "request.timeout.ms": "1000"}).warnings
    assert any("'request.timeout.ms' has no effect" in warning for warning in warnings)
