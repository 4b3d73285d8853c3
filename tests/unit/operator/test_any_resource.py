"""Whatever a resource says: it is understood or refused, pods keep to the restricted profile, and the worker
reads back exactly the properties that were meant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icestream.cluster.configs.properties import parse_properties
from icestream.cluster.settings.worker_env import worker_properties_from
from icestream.java_properties import properties_text
from icestream.operator.manifests import worker_config
from icestream.operator.manifests.cluster import Facts, desired
from icestream.operator.manifests.yaml_text import as_yaml
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.names import dns_label, label_value
from tests.unit.operator.golden import CLUSTERS, resource

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
EXAMPLES = [resource(name) for name in CLUSTERS]


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield so_far
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from paths(one, (*so_far, key))


PLACES = [(example, path) for example in EXAMPLES for path in paths(example) if path]
SPARE = (
    *(
        "rack",
        "tracing",
        "jmxOptions",
        "plugins",
        "logging",
        "jvmOptions",
        "template",
        "livenessProbe",
        "tls",
    ),
    *(
        "authentication",
        "externalConfiguration",
        "resources",
        "network",
        "monitoring",
        "scaling",
        "spark",
        "jobs",
    ),
)


def changed(example: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(example))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return dict(copy)


def parsed(found: Any) -> ClusterSpec | None:
    try:
        return parse_cluster(found)
    except InvalidResource as refused:
        assert refused.reason
        assert refused.message
        return None


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in objects:
        if one["kind"] == "Deployment":
            yield one["spec"]["template"]["spec"]
        if one["kind"] == "ConfigMap" and "executor.yaml" in one["data"]:
            yield json.loads(one["data"]["executor.yaml"])["spec"]


def check(spec: ClusterSpec) -> None:
    objects = list(desired(spec, Facts(has_pod_monitors=True)))
    json.dumps(objects, allow_nan=False)
    for pod in pods(objects):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"].get("runAsUser") != 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(pod)
        assert not [one for one in pod["volumes"] if "hostPath" in one]
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["runAsNonRoot"] is True
            assert context.get("runAsUser") != 0
            assert "privileged" not in context
            names = [one["name"] for one in container["env"]]
            assert len(names) == len(set(names))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=150)
@given(st.sampled_from(PLACES), VALUES)
def test_a_field_of_any_type_is_understood_or_refused(place: Any, value: Any) -> None:
    if spec := parsed(changed(*place, value)):
        check(spec)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=100)
@given(st.sampled_from(EXAMPLES), st.sampled_from(SPARE), VALUES)
def test_a_field_that_is_added_is_understood_or_refused(example: Any, field: str, value: Any) -> None:
    if spec := parsed(changed(example, ("spec", field), value)):
        check(spec)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=50)
@given(VALUES)
def test_anything_at_all_is_refused_in_words(value: Any) -> None:
    assert parsed(value) is None
    assert parsed({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaConnect", "spec": value}) is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=15)
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30), min_size=1, max_size=3))
def test_no_text_of_a_user_breaks_the_yaml(texts: dict[str, str]) -> None:
    spec = parsed(changed(resource("strimzi-v1beta2"), ("spec", "config"), texts))
    if spec:
        objects = list(desired(spec, Facts()))
        assert list(yaml.safe_load_all(as_yaml(objects))) == objects


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=100)
@given(st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=5))
def test_a_properties_file_reads_back_as_it_was_meant(properties: dict[str, str]) -> None:
    assert parse_properties(properties_text(properties)) == properties


KEYS = st.from_regex(r"[a-zA-Z][a-zA-Z0-9._\-]{0,20}", fullmatch=True)
CONFIGS = st.dictionaries(
    KEYS, st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20), max_size=5
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=100)
@given(CONFIGS)
def test_variables_of_the_pod_read_back_as_the_properties_that_were_meant(config: dict[str, str]) -> None:
    example = changed(resource("cluster-from-s3"), ("spec", "workers", "config"), config)
    spec = parse_cluster(example)
    facts = Facts()
    data = worker_config.config_data(spec, facts)
    environ = {"CONNECT_REST_ADVERTISED_HOST_NAME": "10.0.0.1"}
    for one in worker_config.variables(spec, facts):
        held = one.get("valueFrom", {}).get("configMapKeyRef")
        if held:
            environ[one["name"]] = data[held["key"]]
    found = worker_properties_from(environ)
    wanted = worker_config.settings(spec, facts)
    assert {key: found.get(key) for key in wanted} == dict(wanted)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(st.text(max_size=90), unique=True, min_size=2, max_size=2))
def test_two_texts_never_get_the_same_name(texts: list[str]) -> None:
    first, second = map(dns_label, texts)
    assert first != second
    assert max(map(len, (first, second, *map(label_value, texts)))) <= 63


def test_a_name_that_looks_like_one_that_was_made_is_not_the_same() -> None:
    made: Mapping[str, str] = {
        text: dns_label(text) for text in ("a.b", "a-b", "A-B", "a_b", "x" * 64, "x" * 65)
    }
    assert len(set(made.values())) == len(made)
