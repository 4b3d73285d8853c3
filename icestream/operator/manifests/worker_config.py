"""The ConfigMap of the workers, and how their container reads it: as a file for Strimzi's kind, as variables
for ours."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any, Final

from icestream.java_properties import escaped, properties_text
from icestream.operator.kinds import CONFIG_MAP, KAFKA_CONNECT
from icestream.operator.manifests.facts import Facts, Manifest
from icestream.operator.manifests.objects import object_of
from icestream.operator.manifests.pods import HOME, of_pod
from icestream.operator.manifests.spark import driver_properties
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.connection import CERTIFICATES, placeholder

REST_PORT: Final = 8083
CONFIG_FOLDER: Final = "/opt/kafka/custom-config"
CONFIG_FILE: Final = "kafka-connect.properties"
_BLOCK: Final = "worker.properties"
_BLOCK_VARIABLE: Final = "ICESTREAM_WORKER_PROPERTIES"
_ADVERTISED: Final = "rest.advertised.host.name"
_PLAIN: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""Keys that the name of a variable can hold: no capitals, never two signs in a row."""
_SIGNS: Final = {".": "_", "_": "__", "-": "___"}
_LONGEST: Final = 253


def reads_a_file(spec: ClusterSpec) -> bool:
    return spec.kind == KAFKA_CONNECT.name


def settings(spec: ClusterSpec, facts: Facts) -> dict[str, str]:
    """All worker properties that are the same in every pod."""
    found = {"spark.local.dir": f"{HOME}/spark", **spec.properties, **_trusted(spec, facts)}
    found |= driver_properties(spec, facts)
    if reads_a_file(spec):
        found |= {
            "listeners": f"http://:{REST_PORT}",
            _ADVERTISED: "${strimzienv:POD_IP}",
            "rest.advertised.port": str(REST_PORT),
            "plugin.path": "/opt/kafka/plugins",
        }
    else:
        found["rest.port"] = str(REST_PORT)
    return found


def _text(properties: dict[str, str]) -> str:
    """The same for the same properties, so that a worker restarts only where one has changed."""
    return properties_text(dict(sorted(properties.items())))


def _variable_of(key: str) -> str | None:
    """`CONNECT_A_B__C___D` for `a.b_c-d`; None if no variable can name the key."""
    if not _PLAIN.fullmatch(key) or len(key) > _LONGEST:
        return None
    return "CONNECT_" + re.sub(r"[._-]", lambda sign: _SIGNS[sign.group()], key).upper()


def config_data(spec: ClusterSpec, facts: Facts) -> dict[str, str]:
    """The content of the ConfigMap."""
    found = settings(spec, facts)
    if reads_a_file(spec):
        return {CONFIG_FILE: _text(found)}
    # A property of the block's own name is in it: as a key of the ConfigMap, its value would be the block,
    # with whatever properties the operator does not let a resource set.
    rest = {key: value for key, value in found.items() if _variable_of(key) is None or key == _BLOCK}
    # The worker reads the value of a variable as the line of a properties file.
    data = {key: escaped(value) for key, value in found.items() if key not in rest}
    return {**data, _BLOCK: _text(rest)} if rest else data


def config_map(spec: ClusterSpec, facts: Facts) -> Manifest:
    return object_of(CONFIG_MAP, spec, spec.names.config, {"data": config_data(spec, facts)})


def variables(spec: ClusterSpec, facts: Facts) -> list[dict[str, Any]]:
    """Of the worker's container: who it is, and, for our kind, one for each property."""
    own = [
        of_pod("POD_IP", "status.podIP"),
        of_pod("POD_NAME", "metadata.name"),
        {"name": "HOME", "value": HOME},
        {"name": "TMPDIR", "value": "/tmp"},
    ]
    if reads_a_file(spec):
        return own
    found = [of_pod("CONNECT_REST_ADVERTISED_HOST_NAME", "status.podIP")]
    for key in sorted(config_data(spec, facts)):
        variable = _BLOCK_VARIABLE if key == _BLOCK else _variable_of(key)
        held = {"configMapKeyRef": {"name": spec.names.config, "key": key}}
        found.append({"name": variable, "valueFrom": held})
    return own + found


def _trusted(spec: ClusterSpec, facts: Facts) -> dict[str, str]:
    """Certificates of authorities, one after the other, from the files of mounted Secrets."""
    found = []
    for one in spec.trusted:
        names = sorted(facts.secret_keys.get(one.secret, ()))
        keys = (
            [one.certificate] if one.certificate else [key for key in names if fnmatchcase(key, one.pattern)]
        )
        found += [placeholder(f"{CERTIFICATES}/{one.secret}", key) for key in keys]
    if not found:
        return {}
    pair = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "\n".join(found)}
    clients = ("", "producer.", "consumer.", "admin.")
    return {f"{client}{key}": value for client in clients for key, value in pair.items()}
