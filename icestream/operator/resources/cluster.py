"""From a resource as the API server has it to the facts of a cluster. Called by the loop and by `render`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icestream.operator.kinds import ICESTREAM_CLUSTER, KAFKA_CONNECT
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.fields import Fields, shown
from icestream.operator.resources.icestream_cluster import read_icestream_cluster
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.kafka_connect import read_kafka_connect
from icestream.operator.resources.metadata import Header
from icestream.operator.resources.names import is_subdomain

_READERS: Final = {
    **{(one, KAFKA_CONNECT.name): read_kafka_connect for one in KAFKA_CONNECT.api_versions},
    **{(one, ICESTREAM_CLUSTER.name): read_icestream_cluster for one in ICESTREAM_CLUSTER.api_versions},
}


def parse_cluster(resource: Mapping[str, Any]) -> ClusterSpec:
    """Raises InvalidResource, and nothing else, whatever the resource is."""
    if not isinstance(resource, Mapping):
        raise InvalidResource(
            f"the resource is {shown(resource)}, not a map; write apiVersion, kind and spec"
        )
    whole = Fields(resource, "")
    api_version, kind = whole.text("apiVersion"), whole.text("kind")
    reader = _READERS.get((api_version, kind))
    if reader is None:
        known = ", ".join(f"{name} of {version}" for version, name in _READERS)
        raise InvalidResource(
            f"{shown(kind)} of {shown(api_version)} is no kind of cluster; take one of {known}"
        )
    if "spec" not in whole:
        raise InvalidResource("spec is missing; write what the cluster shall be")
    return reader(_header(whole, api_version, kind), whole.map("spec"))


def _header(whole: Fields, api_version: str, kind: str) -> Header:
    metadata = whole.map("metadata")
    name, namespace = metadata.required("name"), metadata.text("namespace", "default")
    for key, value in (("name", name), ("namespace", namespace)):
        if not is_subdomain(value):
            raise InvalidResource(
                f"{metadata.at(key)} is {shown(value)}, which is no name of an object; mend it"
            )
    return Header(
        api_version=api_version,
        kind=kind,
        name=name,
        namespace=namespace,
        uid=metadata.text("uid"),
        generation=metadata.number("generation", 0, at_most=2**63 - 1),
        labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"),
    )


__all__ = ["ClusterSpec", "InvalidResource", "parse_cluster"]
