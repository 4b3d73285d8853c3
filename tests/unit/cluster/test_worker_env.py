"""`CONNECT_*` variables as the cp-kafka-connect images read them."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.settings.worker_env import property_name, worker_properties_from

GOOD = {
    "CONNECT_BOOTSTRAP_SERVERS": "kafka-1:9092,kafka-2:9092",
    "CONNECT_GROUP_ID": "connect-my-cluster",
    "CONNECT_CONFIG_STORAGE_TOPIC": "connect-configs",
    "CONNECT_OFFSET_STORAGE_TOPIC": "connect-offsets",
    "CONNECT_STATUS_STORAGE_TOPIC": "connect-status",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_REST_ADVERTISED_HOST_NAME": "10.0.0.1",
}


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("CONNECT_GROUP_ID", "group.id"),
        (
            "CONNECT_PRODUCER_MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION",
            "producer.max.in.flight.requests.per.connection",
        ),
        ("CONNECT_WITH__UNDERSCORE", "with_underscore"),
        ("CONNECT_WITH___DASH", "with-dash"),
        ("CONNECT_A____B", "a-_b"),
        ("CONNECT_A_____B", "a-_b"),
        ("CONNECT_A______B", "a--b"),
        ("CONNECT__EDGE_", "_edge_"),
        ("CONNECT_A_B__C___D", "a.b_c-d"),
    ],
)
def test_underscores_become_dots_underscores_and_dashes(variable: str, key: str) -> None:
    assert property_name(variable) == key


def test_only_connect_variables_count() -> None:
    others = {"PATH": "/bin", "KAFKA_OPTS": "-Dx=y", "connect_x": "1", "XCONNECT_Y": "2"}
    found = worker_properties_from({**GOOD, **others})
    assert found == {property_name(variable): value for variable, value in GOOD.items()}


def test_what_only_the_image_uses_is_left_out() -> None:
    more = {
        "CONNECT_METRIC_REPORTERS": "x",
        "CONNECT_CUB_KAFKA_TIMEOUT": "40",
        "CONNECT_LOG4J_APPENDER_X": "y",
    }
    assert worker_properties_from({**GOOD, **more}) == worker_properties_from(GOOD)


def test_values_are_read_as_in_a_properties_file() -> None:
    found = worker_properties_from(
        {**GOOD, "CONNECT_A": "  c:\\\\dir\\u0041", "CONNECT_B": "x=y:z", "CONNECT_C": ""}
    )
    assert (found["a"], found["b"], found["c"]) == ("c:\\dirA", "x=y:z", "")


def test_every_missing_variable_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        worker_properties_from({"CONNECT_GROUP_ID": "g", "CONNECT_KEY_CONVERTER": "", "CONNECT_X": "\\u12"})
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == 8
    assert any(text.startswith("CONNECT_KEY_CONVERTER is required; set it") for text in told)
    assert any("CONNECT_X, line 1" in text for text in told)


def test_avro_needs_its_registry() -> None:
    avro = {**GOOD, "CONNECT_VALUE_CONVERTER": "io.confluent.connect.avro.AvroConverter"}
    with pytest.raises(ConfigError, match="CONNECT_VALUE_CONVERTER_SCHEMA_REGISTRY_URL is required"):
        worker_properties_from(avro)
    found = worker_properties_from({**avro, "CONNECT_VALUE_CONVERTER_SCHEMA_REGISTRY_URL": "http://registry"})
    assert found["value.converter.schema.registry.url"] == "http://registry"


def test_log4j_levels_become_ours() -> None:
    more = {"CONNECT_LOG4J_ROOT_LOGLEVEL": "warn", "CONNECT_LOG4J_LOGGERS": "org.apache.kafka=DEBUG,x=ERROR"}
    found = worker_properties_from({**GOOD, **more})
    assert found["icestream.log.level"] == "WARNING"
    assert found["icestream.log.loggers"] == "org.apache.kafka=DEBUG,x=ERROR"
    own = worker_properties_from({**GOOD, **more, "CONNECT_ICESTREAM_LOG_LEVEL": "ERROR"})
    assert own["icestream.log.level"] == "ERROR"


def test_keys_with_capitals_come_as_lines_of_one_variable() -> None:
    block = "spark.driver.extraJavaOptions=-Da=b\\\\c\ngroup.id=other\n"
    found = worker_properties_from({**GOOD, "ICESTREAM_WORKER_PROPERTIES": block})
    assert found["spark.driver.extraJavaOptions"] == "-Da=b\\c"
    assert found["group.id"] == "connect-my-cluster"


def test_a_line_of_that_variable_that_cannot_be_read_names_it() -> None:
    with pytest.raises(ConfigError, match="ICESTREAM_WORKER_PROPERTIES"):
        worker_properties_from({**GOOD, "ICESTREAM_WORKER_PROPERTIES": "a=\\u00"})
