"""A validation, key by key, as `/connector-plugins/{p}/config/validate` shows it. Called by the service."""

from __future__ import annotations

from typing import Any

from icestream.api.config import Setting, Type
from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.errors import NotFoundError
from icestream.cluster.connector_config import Validation
from icestream.cluster.views import CheckedSetting, ConfigReport
from icestream.plugins import find_connector


def report_from(validation: Validation) -> ConfigReport:
    """Every setting with its value and errors; keys without a setting come last."""
    errors: dict[str, list[str]] = {}
    for problem in validation.problems:
        errors.setdefault(problem.key, []).append(problem.message)
    known = [
        _checked(setting, validation, errors.pop(setting.name, []))
        for setting in validation.definition.settings
    ]
    suggestions = validation.suggestions or {}
    strangers = [
        CheckedSetting(
            key,
            None,
            validation.config.get(key),
            recommended=(suggestions[key],) if key in suggestions else (),
            errors=tuple(messages),
        )
        for key, messages in errors.items()
    ]
    return ConfigReport(validation.plugin.class_name, (*known, *strangers), validation.warnings)


def definition_of(plugin_name: str) -> tuple[CheckedSetting, ...]:
    """The settings of a plugin, its own first."""
    try:
        plugin = find_connector(plugin_name)
    except NotFoundError:
        raise NotFoundError(f"Unknown plugin {plugin_name}.") from None
    definition = plugin.settings().definition({}) + SINK_CONNECTOR
    return tuple(CheckedSetting(setting.name, setting, None) for setting in definition.settings)


def text_of(value: Any) -> str | None:
    """A value as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _checked(setting: Setting, validation: Validation, errors: list[str]) -> CheckedSetting:
    value = validation.config.get(setting.name)
    if value is None and not setting.is_required:
        value = text_of(setting.default)
    if value is not None and setting.type is Type.PASSWORD:
        value = "[hidden]"
    return CheckedSetting(setting.name, setting, value, tuple(setting.choices), tuple(errors))
