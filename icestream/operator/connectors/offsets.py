"""Offsets of a connector to and from a ConfigMap, as the annotation `strimzi.io/connector-offsets` asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from icestream.api.errors import IcestreamError
from icestream.api.nesting import read_json
from icestream.operator.connectors.borders import ConnectorObjects, ConnectorRest
from icestream.operator.connectors.facts import ConnectorSpec

KEY: Final = "offsets.json"
REASONS: Final = {"list": "ListOffsets", "alter": "AlterOffsets", "reset": "ResetOffsets"}


def manage_offsets(
    verb: str, spec: ConnectorSpec, state: str, rest: ConnectorRest, objects: ConnectorObjects
) -> None:
    """Raises one sentence for a Warning; then the annotation stays, and this is tried again."""
    if verb == "list":
        if spec.list_offsets_to is None:
            raise IcestreamError("the offsets have nowhere to go; set spec.listOffsets.toConfigMap.name")
        text = json.dumps({"offsets": rest.offsets(spec.name)}, indent=2)
        objects.write_config_map_value(spec.list_offsets_to, KEY, text)
        return
    if state != "STOPPED":
        raise IcestreamError(
            f"the connector is {state}, and offsets change only while it is STOPPED; "
            "set spec.state to stopped"
        )
    if verb == "reset":
        rest.reset_offsets(spec.name)
    else:
        rest.alter_offsets(spec.name, _entries(spec, objects))


def _entries(spec: ConnectorSpec, objects: ConnectorObjects) -> list[Mapping[str, Any]]:
    name = spec.alter_offsets_from
    if name is None:
        raise IcestreamError("there are no offsets to set; set spec.alterOffsets.fromConfigMap.name")
    text = objects.config_map_value(name, KEY)
    if text is None:
        raise IcestreamError(f"ConfigMap '{name}' has no key '{KEY}'; write the offsets there")
    try:
        entries = read_json(text)["offsets"]
    except (ValueError, KeyError, TypeError):
        entries = None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IcestreamError(
            f"'{KEY}' in ConfigMap '{name}' is not JSON with a list of \"offsets\"; write what REST takes at "
            f"PATCH /connectors/{spec.name}/offsets"
        )
    return entries
