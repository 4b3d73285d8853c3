"""The configs of workers of both modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.settings import worker_config
from icestream.cluster.settings.rest_settings import Listener
from icestream.cluster.settings.worker_config import parse_distributed, parse_standalone
from icestream.kafka.timing import Timing
from icestream.plugins import Installed

BOTH = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
GOOD = {**BOTH, "offset.storage.file.filename": "/tmp/connect.offsets"}
CLUSTER = {
    **BOTH,
    "group.id": "g",
    "offset.storage.topic": "offsets",
    "config.storage.topic": "configs",
    "status.storage.topic": "status",
}


def test_a_small_file_is_enough() -> None:
    config = parse_standalone(GOOD)
    assert config.rest.listeners == (Listener("http", "127.0.0.1", 8083),)
    assert config.state_file == Path("/tmp/connect.offsets.icestream.json")
    assert config.warnings == ()


def test_a_cluster_needs_its_group_and_its_topics() -> None:
    config = parse_distributed({**CLUSTER, "session.timeout.ms": "6000"})
    assert (config.group, config.config_topic, config.status_topic) == ("g", "configs", "status")
    assert config.timing == Timing(6000, 3000, 60_000)
    assert config.rest.listeners == (Listener("http", "", 8083),), "the other workers must reach it"
    assert config.warnings == (config.rest.exposure,)


@pytest.mark.parametrize(
    "key", ["group.id", "offset.storage.topic", "config.storage.topic", "status.storage.topic"]
)
def test_what_a_cluster_cannot_do_without(key: str) -> None:
    with pytest.raises(ConfigError, match=f'Missing required configuration "{key}"'):
        parse_distributed({name: value for name, value in CLUSTER.items() if name != key})


def test_a_heart_must_beat_within_the_session() -> None:
    with pytest.raises(ConfigError, match=r"'heartbeat\.interval\.ms=3000' is not below"):
        parse_distributed({**CLUSTER, "session.timeout.ms": "3000"})


def test_a_plugin_that_cannot_be_used_is_told_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_config, "installed", lambda: Installed([], ["'x' cannot be loaded"]))
    assert parse_standalone(GOOD).warnings == ("'x' cannot be loaded",)


def test_spark_and_client_settings_pass_as_they_are() -> None:
    more = {"spark.master": "local[2]", "sasl.mechanism": "PLAIN"}
    config = parse_standalone({**GOOD, **more})
    assert {key: config.raw[key] for key in more} == more
    assert config.warnings == ()


def test_what_has_no_effect_is_said() -> None:
    config = parse_standalone({**GOOD, "plugin.path": "/usr/share/java", "group.id": "g", "my.note": "x"})
    assert config.warnings == (
        "'my.note' is not a known configuration and has no effect",
        "'plugin.path' has no effect: plugins are Python packages",
        "'group.id' has no effect in this mode",
    )


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"bootstrap.server": "x"}, "did you mean 'bootstrap.servers'?"),
        ({"rest.port": "x"}, "Invalid value x for configuration rest.port"),
        ({"topic.tracking.enable": "maybe"}, "Invalid value maybe for configuration topic.tracking.enable"),
    ],
)
def test_refuses_with_the_reason(keys: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_standalone({**GOOD, **keys})
    assert reason in str(caught.value)


def test_converters_are_required() -> None:
    with pytest.raises(ConfigError, match=r'"key\.converter".*"value\.converter"'):
        parse_standalone({"offset.storage.file.filename": "x"})


def test_our_own_state_file_wins_and_is_enough() -> None:
    assert parse_standalone({**GOOD, "icestream.state.file": "/s.json"}).state_file == Path("/s.json")
    alone = parse_standalone({**BOTH, "icestream.state.file": "/s.json"})
    assert alone.state_file == Path("/s.json")
    assert alone.raw["offset.storage.file.filename"] == "/s.json.offsets"


@pytest.mark.parametrize("given", [{}, {"offset.storage.file.filename": ""}])
def test_a_worker_must_know_where_to_keep_things(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r'"offset\.storage\.file\.filename"'):
        parse_standalone({**BOTH, **given})


AVRO = {"value.converter": "io.confluent.connect.avro.AvroConverter"}


def test_keys_of_the_workers_converters_are_known() -> None:
    url = {"value.converter.schema.registry.url": "http://127.0.0.1:8081"}
    config = parse_standalone({**GOOD, **AVRO, **url})
    assert config.warnings == (
        "'value.converter.schemas.enable' is not a known configuration and has no effect",
    )
    with pytest.raises(ConfigError, match=r"did you mean 'value\.converter\.schema\.registry\.url'"):
        parse_standalone({**GOOD, **AVRO, "value.converter.schema.registry.ur": "x"})


def test_a_converter_that_every_connector_may_replace_need_not_be_complete() -> None:
    assert parse_standalone({**GOOD, **AVRO}).raw["value.converter"] == AVRO["value.converter"]
