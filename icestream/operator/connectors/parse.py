"""From a KafkaConnector of either version to what it asks for. Pure; used by the reconciliation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icestream.api.errors import IcestreamError
from icestream.operator.connectors.facts import AutoRestartPolicy, ConnectorSpec, SpecWarning
from icestream.operator.resources.names import is_subdomain

STATES: Final = ("running", "paused", "stopped")
_OWN_KEYS: Final = ("name", "connector.class", "tasks.max", "connector.plugin.version")
_FIELDS: Final = frozenset(
    {
        "class",
        "tasksMax",
        "version",
        "config",
        "state",
        "pause",
        "autoRestart",
        "listOffsets",
        "alterOffsets",
    }
)


class InvalidConnector(IcestreamError):
    """The resource cannot be acted upon; its message is for the status."""


def parse_connector(resource: Mapping[str, Any]) -> ConnectorSpec:
    """Raises InvalidConnector with one sentence."""
    spec = _object(resource, "spec")
    name = str(_object(resource, "metadata").get("name", ""))
    tasks_max = _whole_number(spec, "tasksMax", "spec.tasksMax", least=1)
    config, dropped = _config(_object(spec, "config", "spec.config"))
    own = {
        "name": name,
        "connector.class": _text(spec, "class", "spec.class"),
        "tasks.max": None if tasks_max is None else str(tasks_max),
        "connector.plugin.version": _text(spec, "version", "spec.version"),
    }
    state, both = _state(spec)
    return ConnectorSpec(
        name=name,
        config={**config, **{key: value for key, value in own.items() if value is not None}},
        state=state,
        tasks_max=tasks_max,
        auto_restart=_auto_restart(_object(spec, "autoRestart", "spec.autoRestart")),
        list_offsets_to=_config_map(spec, "listOffsets", "toConfigMap"),
        alter_offsets_from=_config_map(spec, "alterOffsets", "fromConfigMap"),
        warnings=(*dropped, *both, *_unknown(spec)),
    )


def _config(given: Mapping[str, Any]) -> tuple[dict[str, str], list[SpecWarning]]:
    dropped = [key for key in _OWN_KEYS if key in given]
    config = {key: _config_text(key, value) for key, value in given.items() if key not in _OWN_KEYS}
    if not dropped:
        return config, []
    names = ", ".join(f"'{key}'" for key in dropped)
    message = f"spec.config has {names}, which has no effect there; use metadata.name and the fields of spec"
    return config, [SpecWarning("ForbiddenConfig", message)]


def _config_text(key: str, value: Any) -> str:
    """As Java prints it: that is what users of Strimzi have in their connectors' configs."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        from icestream.records.java_text import java_double

        return java_double(value)
    kind = "null" if value is None else "a list" if isinstance(value, list) else "a map"
    raise InvalidConnector(f"spec.config has {kind} at '{key}'; write a string, a number or a boolean")


def _state(spec: Mapping[str, Any]) -> tuple[str, list[SpecWarning]]:
    state, pause = _text(spec, "state", "spec.state"), _boolean(spec, "pause", "spec.pause")
    if state is not None and state not in STATES:
        raise InvalidConnector(f"spec.state is '{state}'; write one of {', '.join(STATES)}")
    if state is None:
        return ("paused" if pause else "running"), []
    if pause is None:
        return state, []
    message = f"spec has both state and pause; state decides, and the connector will be {state}; remove pause"
    return state, [SpecWarning("UpdateState", message)]


def _auto_restart(given: Mapping[str, Any]) -> AutoRestartPolicy | None:
    if not _boolean(given, "enabled", "spec.autoRestart.enabled"):
        return None
    return AutoRestartPolicy(_whole_number(given, "maxRestarts", "spec.autoRestart.maxRestarts", least=0))


def _config_map(spec: Mapping[str, Any], verb: str, place: str) -> str | None:
    path = f"spec.{verb}"
    reference = _object(_object(spec, verb, path), place, f"{path}.{place}")
    name = _text(reference, "name", f"{path}.{place}.name")
    if name and not is_subdomain(name):
        raise InvalidConnector(f"{path}.{place}.name is no name that a ConfigMap can have; correct it")
    return name or None


def _unknown(spec: Mapping[str, Any]) -> list[SpecWarning]:
    names = sorted(set(spec) - _FIELDS)
    if not names:
        return []
    fields = ", ".join(f"'{name}'" for name in names)
    return [SpecWarning("UnknownFields", f"spec has {fields}, which has no effect; remove or correct it")]


def _object(given: Mapping[str, Any], key: str, path: str = "") -> Mapping[str, Any]:
    found = given.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise InvalidConnector(f"{path or key} is not a map; correct it")
    return found


def _text(given: Mapping[str, Any], key: str, path: str) -> str | None:
    found = given.get(key)
    if found is not None and not isinstance(found, str):
        raise InvalidConnector(f"{path} is not a string; put it into quotes")
    return found


def _boolean(given: Mapping[str, Any], key: str, path: str) -> bool | None:
    found = given.get(key)
    if found is not None and not isinstance(found, bool):
        raise InvalidConnector(f"{path} is neither true nor false; write one of them, without quotes")
    return found


def _whole_number(given: Mapping[str, Any], key: str, path: str, least: int) -> int | None:
    found = given.get(key)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise InvalidConnector(f"{path} is not a whole number of at least {least}; correct it")
    return found
