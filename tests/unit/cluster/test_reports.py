"""What `validate` and `/connector-plugins/{p}/config` say about each key."""

from __future__ import annotations

import pytest

from icestream.api.errors import NotFoundError
from icestream.cluster.configs.reports import definition_of, report_from
from icestream.cluster.configs.validation import validate_connector
from icestream.cluster.views import CheckedSetting

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {
    "key.converter": STRING,
    "value.converter": "JsonConverter",
    "icestream.file.connectors.enabled": "true",
}
SINK = {"name": "c", "connector.class": "FileStreamSink", "file": "out.txt", "topics": "t"}


def reported(**changes: str | None) -> dict[str, CheckedSetting]:
    config = {**SINK, **{key.replace("_", "."): value for key, value in changes.items()}}
    return {setting.name: setting for setting in report_from(validate_connector(config, WORKER)).settings}


def test_the_name_is_the_class_as_it_was_written() -> None:
    assert report_from(validate_connector(SINK, WORKER)).name == "FileStreamSink"


@pytest.mark.parametrize(
    ("key", "given", "shown"),
    [
        ("tasks.max", " 2 ", "2"),
        ("tasks.max", "0", "0"),
        ("tasks.max", "x", None),
        ("tasks.max", "1_000", None),
        ("tasks.max", None, None),
        ("errors.log.enable", "TRUE", "true"),
        ("errors.tolerance", "some", "some"),
        ("topics", "a , b,c", "a,b,c"),
        ("topics", "a,,b", "a,,b"),
        ("key.converter", "JsonConverter", JSON),
        ("key.converter", "No.Such", None),
        ("errors.deadletterqueue.topic.replication.factor", "40000", None),
    ],
)
def test_a_value_is_shown_as_it_is_understood(key: str, given: str | None, shown: str | None) -> None:
    config = {**SINK, key: given}
    found = {setting.name: setting for setting in report_from(validate_connector(config, WORKER)).settings}
    assert found[key].value == shown


def test_defaults_of_converters_are_the_workers() -> None:
    found = reported()
    assert found["key.converter"].definition is not None
    assert found["key.converter"].definition.default == STRING
    assert found["value.converter"].value == JSON
    assert found["header.converter"].value == "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    assert found["key.converter.plugin.version"].recommended == ("4.3.1",)


def test_settings_of_a_converter_are_shown_when_the_connector_names_it() -> None:
    assert not [name for name in reported() if name.startswith("key.converter.schema")]
    found = reported(key_converter=JSON, **{"key.converter.schemas.enable": "maybe"})
    assert found["key.converter.schemas.enable"].errors == (
        "Invalid value maybe for configuration schemas.enable: Expected value to be either true or false",
    )
    assert found["key.converter.converter.type"].value == "key"


def test_the_version_of_a_converter_that_is_unknown_is_not_visible() -> None:
    found = reported(key_converter="No.Such")
    assert not found["key.converter.plugin.version"].is_visible
    assert found["key.converter"].errors == (
        "Invalid value No.Such for configuration key.converter: Class No.Such could not be found.",
    )


def test_a_version_must_be_the_one_we_have() -> None:
    found = reported(connector_plugin_version="9")
    message = (
        "Plugin org.apache.kafka.connect.file.FileStreamSinkConnector not found that matches the version "
        "range [9,9], available versions: [4.3.1]"
    )
    assert found["connector.class"].errors == found["connector.plugin.version"].errors == (message,)
    assert not reported(connector_plugin_version="4.3.1")["connector.plugin.version"].errors


def test_errors_come_in_the_order_of_the_settings() -> None:
    config = {**SINK, "errors.tolerance": "x", "tasks.max": "0", "topics": ""}
    problems = validate_connector(config, WORKER).problems
    assert [problem.key for problem in problems] == [
        "tasks.max",
        "errors.tolerance",
        "topics",
        "topics.regex",
    ]


def test_client_settings_are_listed_without_a_definition() -> None:
    found = reported(**{"consumer.override.max.poll.records": "5", "producer.override.acks": "all"})
    override = found["consumer.override.max.poll.records"]
    assert (override.value, override.definition) == ("5", None)
    assert "producer.override.acks" not in found


def test_a_plugins_own_settings_come_first() -> None:
    names = [setting.name for setting in definition_of("FileStreamSource")]
    assert names[:4] == ["file", "topic", "batch.size", "name"]
    assert not [name for name in names if name.endswith(".schemas.enable")]


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        ("Json", ["converter.type", "schemas.enable", "schemas.cache.size", "schema.content"]),
        (STRING, ["converter.type", "converter.encoding"]),
        ("SimpleHeaderConverter", []),
    ],
)
def test_converters_have_definitions_too(plugin: str, names: list[str]) -> None:
    assert [setting.name for setting in definition_of(plugin)][:4] == names


def test_an_unknown_plugin_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"Unknown plugin SimpleHeader\."):
        definition_of("SimpleHeader")
