"""KafkaConnector resources of both versions, read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icestream.operator.connectors.facts import AutoRestartPolicy
from icestream.operator.connectors.parse import InvalidConnector, parse_connector
from icestream.operator.connectors.placement import unplaced


def resource(api_version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kafka.strimzi.io/{api_version}",
        "kind": "KafkaConnector",
        "metadata": {"name": "sink", "namespace": "ns", "labels": {"strimzi.io/cluster": "my"}},
        "spec": spec,
    }


def test_fields_of_the_spec_become_keys_of_the_config() -> None:
    spec = parse_connector(
        resource(**{"class": "FileStreamSink", "tasksMax": 2, "version": "1.0", "config": {"file": "/tmp/x"}})
    )
    assert spec.config == {
        "name": "sink",
        "connector.class": "FileStreamSink",
        "tasks.max": "2",
        "connector.plugin.version": "1.0",
        "file": "/tmp/x",
    }
    assert spec.warnings == ()


def test_a_field_that_is_not_set_is_no_key_of_the_config() -> None:
    assert parse_connector(resource(**{"class": "C"})).config == {"name": "sink", "connector.class": "C"}


def test_values_are_written_as_java_writes_them() -> None:
    config = {"a": 7, "b": True, "c": 1e10, "d": 0.5, "e": "", "f": False, "g": 2**70, "h": 1e-5}
    found = parse_connector(resource(config=config)).config
    assert {key: found[key] for key in config} == {
        "a": "7",
        "b": "true",
        "c": "1.0E10",
        "d": "0.5",
        "e": "",
        "f": "false",
        "g": str(2**70),
        "h": "1.0E-5",
    }


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ([1], "a list"), ({"x": 1}, "a map")])
def test_what_is_no_single_value_is_refused_with_its_key(value: object, kind: str) -> None:
    with pytest.raises(InvalidConnector, match=f"{kind} at 'topics'"):
        parse_connector(resource(config={"topics": value}))


def test_keys_that_belong_to_fields_are_dropped_with_a_warning() -> None:
    config = {
        "name": "x",
        "connector.class": "y",
        "tasks.max": 9,
        "connector.plugin.version": "z",
        "names": "n",
    }
    spec = parse_connector(resource(config=config, tasksMax=1))
    assert spec.config == {"name": "sink", "tasks.max": "1", "names": "n"}
    (warning,) = spec.warnings
    assert "'name', 'connector.class', 'tasks.max', 'connector.plugin.version'" in warning.message


@pytest.mark.parametrize(
    ("spec", "state", "warned"),
    [
        ({}, "running", False),
        ({"state": "stopped"}, "stopped", False),
        ({"state": "paused"}, "paused", False),
        ({"pause": True}, "paused", False),
        ({"pause": False}, "running", False),
        ({"pause": True, "state": "running"}, "running", True),
    ],
)
def test_the_state_is_that_of_state_or_else_of_pause(spec: dict[str, Any], state: str, warned: bool) -> None:
    found = parse_connector(resource("v1beta2", **spec))
    assert found.state == state
    assert bool(found.warnings) == warned


def test_auto_restart_and_config_maps_of_offsets_are_read() -> None:
    spec = parse_connector(
        resource(
            autoRestart={"enabled": True, "maxRestarts": 3},
            listOffsets={"toConfigMap": {"name": "to"}},
            alterOffsets={"fromConfigMap": {"name": "from"}},
        )
    )
    assert spec.auto_restart == AutoRestartPolicy(3)
    assert (spec.list_offsets_to, spec.alter_offsets_from) == ("to", "from")
    assert parse_connector(resource(autoRestart={"enabled": False})).auto_restart is None
    assert parse_connector(resource(autoRestart={"enabled": True})).auto_restart == AutoRestartPolicy(None)


def test_an_unknown_field_is_told() -> None:
    (warning,) = parse_connector(resource(taskMax=3)).warnings
    assert "'taskMax'" in warning.message


@pytest.mark.parametrize(
    "spec",
    [
        {"state": "Running"},
        {"state": 1},
        {"tasksMax": "2"},
        {"tasksMax": 0},
        {"tasksMax": True},
        {"class": 5},
        {"config": []},
        {"autoRestart": {"enabled": "true"}},
        {"autoRestart": {"enabled": True, "maxRestarts": -1}},
        {"listOffsets": {"toConfigMap": "x"}},
        {"pause": "true"},
    ],
)
def test_a_field_of_another_type_is_refused_with_its_path(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidConnector, match="spec"):
        parse_connector(resource(**spec))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.sampled_from(
    ["class", "tasksMax", "version", "config", "state", "pause", "autoRestart", "listOffsets", "alterOffsets"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_FIELDS | st.text(max_size=5), _VALUES, max_size=5) | _VALUES)
def test_any_spec_is_read_or_refused(spec: Any) -> None:
    try:
        found = parse_connector({"metadata": {"name": "n"}, "spec": spec})
    except InvalidConnector as error:
        assert "\n" not in str(error)
    else:
        assert all(isinstance(value, str) for value in found.config.values())


USED = {"metadata": {"annotations": {"strimzi.io/use-connector-resources": "true"}}}


def test_messages_about_the_cluster_are_those_that_people_know() -> None:
    connector = resource()
    lost = {"metadata": {"name": "sink", "namespace": "ns"}}
    found = [
        unplaced(lost, USED, 1),
        unplaced(connector, None, None),
        unplaced(connector, USED, 0),
        unplaced(connector, {"metadata": {}}, 1),
    ]
    assert [one and one.message for one in found] == [
        "Resource lacks label 'strimzi.io/cluster': No connect cluster in which to create this connector.",
        "KafkaConnect resource 'my' identified by label 'strimzi.io/cluster' does not exist in namespace ns.",
        "Kafka Connect cluster 'my' in namespace ns has 0 replicas.",
        "KafkaConnect cluster 'my' in namespace ns is not configured with annotation "
        "strimzi.io/use-connector-resources",
    ]
    assert unplaced(connector, USED, 2) is None
    assert unplaced(connector, USED, None) is None
