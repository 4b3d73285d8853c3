"""The map `config` of a resource: worker properties, without those that the operator itself has to say."""

from __future__ import annotations

from typing import Final

from icestream.operator.resources.draft import FORBIDDEN, Draft
from icestream.operator.resources.fields import Fields, property_text
from icestream.operator.resources.invalid import InvalidResource

GROUP_AND_TOPICS: Final = (
    "group.id",
    "config.storage.topic",
    "offset.storage.topic",
    "status.storage.topic",
)
_FORBIDDEN: Final = (
    "ssl.",
    "sasl.",
    "security.",
    "listeners",
    "plugin.path",
    "rest.",
    "bootstrap.servers",
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
    "prometheus.metrics.reporter.",
)
_ALLOWED: Final = frozenset(
    {
        "ssl.endpoint.identification.algorithm",
        "ssl.cipher.suites",
        "ssl.protocol",
        "ssl.enabled.protocols",
    }
)
_PROVIDERS: Final = "config.providers"
_KUBERNETES: Final = "io.strimzi.kafka.Kubernetes"
_OURS: Final = {
    "strimzienv": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "strimzifile": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "strimzidir": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
_IN_THE_CLUSTER: Final = {"strimzisecrets": "io.strimzi.kafka.KubernetesSecretConfigProvider"}
_PATHS: Final = "/opt/kafka"
"""Where Secrets and ConfigMaps are mounted: placeholders reach no further."""
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_LONGEST: Final = 2**16


def read_config(fields: Fields, draft: Draft, *, forbids_topics: bool) -> None:
    """Add the properties of `config`; a warning for each that is left out."""
    given = fields.map("config")
    forbidden = (*_FORBIDDEN, *GROUP_AND_TOPICS) if forbids_topics else _FORBIDDEN
    for key, value in given.values.items():
        path = given.at(key)
        text = property_text(value, path)
        if not key.strip() or len(key) > 250 or len(text) > _LONGEST:
            raise InvalidResource(
                f"{path[:80]} has a key or a value of a length that cannot be right; shorten it"
            )
        if key not in _ALLOWED and key.lower().startswith(forbidden):
            draft.warn(FORBIDDEN, f"{path} is left out: the operator sets it, or another field does")
        else:
            draft.properties[key] = text


def add_providers(draft: Draft) -> None:
    """Config providers of Strimzi's workers, behind those of the user."""
    names = [name.strip() for name in draft.properties.get(_PROVIDERS, "").split(",") if name.strip()]
    classes = [draft.properties.get(f"{_PROVIDERS}.{name}.class", "") for name in names]
    draft.needs_token = draft.needs_token or any(one.startswith(_KUBERNETES) for one in classes)
    ours = _OURS | (_IN_THE_CLUSTER if draft.needs_token else {})
    draft.properties[_PROVIDERS] = ",".join([*(name for name in names if name not in ours), *ours])
    for name, java in ours.items():
        draft.properties[f"{_PROVIDERS}.{name}.class"] = java
    for name in ("strimzifile", "strimzidir"):
        draft.properties[f"{_PROVIDERS}.{name}.param.allowed.paths"] = _PATHS
