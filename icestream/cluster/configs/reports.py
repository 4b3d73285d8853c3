"""A validation, key by key, as `/connector-plugins/{p}/config/validate` shows it. Called by the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.api.errors import NotFoundError
from icestream.cluster.configs.converter_settings import named_converter_settings
from icestream.cluster.configs.validation import Validation, framework_of
from icestream.cluster.views import CheckedSetting, ConfigReport
from icestream.converters.catalog import SIMPLE_HEADERS, ConverterPlugin, converters_for, find_converter
from icestream.plugins import find_connector
from icestream.transforms.catalog import find_predicate, find_transform
from icestream.transforms.declared import TYPE, VERSION, recommended

_VERSION_KEY: Final = ".plugin.version"
_CONVERTERS: Final = tuple(f"{kind}.converter" for kind in CONVERTER_KINDS)
_OVERRIDES: Final = {"sink": "consumer.override.", "source": "producer.override."}


def report_from(validation: Validation) -> ConfigReport:
    """Every setting with its value and errors; keys without a setting come last."""
    errors: dict[str, list[str]] = {}
    for problem in validation.problems:
        errors.setdefault(problem.key, []).append(problem.message)
    known = [_checked(setting, validation, errors.pop(setting.name, [])) for setting in _reported(validation)]
    suggestions = validation.suggestions
    strangers = [
        CheckedSetting(
            key,
            None,
            validation.config.get(key),
            recommended=(suggestions[key],) if key in suggestions else (),
            errors=tuple(errors.get(key, ())),
        )
        for key in dict.fromkeys((*errors, *_overrides(validation)))
    ]
    return ConfigReport(validation.class_name, (*known, *strangers), validation.warnings)


def definition_of(plugin_name: str) -> tuple[CheckedSetting, ...]:
    """The settings of a plugin, its own first."""
    converter = find_converter(plugin_name)
    if converter is not None:
        return _unchecked(converter.shown_settings)
    transform = find_transform(plugin_name)
    if transform is not None:
        return _unchecked(transform.plugin.settings.settings)
    predicate = find_predicate(plugin_name)
    if predicate is not None:
        return _unchecked(predicate.settings.settings)
    try:
        connector = find_connector(plugin_name)
    except NotFoundError:
        raise NotFoundError(f"Unknown plugin {plugin_name}.") from None
    framework = ConfigDef(
        [
            replace(setting, default=connector.version)
            if setting.name == "connector.plugin.version"
            else setting
            for setting in framework_of(connector.plugin).settings
        ]
    )
    return _unchecked((connector.plugin.definition({}) + framework).settings)


def settings_of(config: Config) -> list[Setting]:
    """All settings that a config of this class may have, as far as it can be read; none if nobody knows the
    class. Checks nothing: a thousand configs take a moment."""
    try:
        plugin = find_connector(config.get("connector.class", "")).plugin
    except NotFoundError:
        return []
    try:
        own = plugin.definition(config)
    except Exception:  # code of another package, and a config that may be wrong
        own = plugin.settings
    return [*own.settings, *framework_of(plugin).settings, *named_converter_settings(config)]


def _unchecked(settings: Sequence[Setting]) -> tuple[CheckedSetting, ...]:
    return tuple(CheckedSetting(setting.name, setting, None) for setting in settings)


def text_of(value: Any) -> str | None:
    """A value as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _reported(validation: Validation) -> list[Setting]:
    """The settings of the class; those of converters only if the config names the converter itself."""
    defaults = _defaults(validation)
    own = [
        replace(setting, default=defaults[setting.name]) if setting.name in defaults else setting
        for setting in validation.definition.settings
    ]
    return [*own, *named_converter_settings(validation.config)]


def _defaults(validation: Validation) -> dict[str, str | None]:
    """Defaults that depend on the class and on the worker."""
    found: dict[str, str | None] = {"connector.plugin.version": validation.connector.version}
    for kind in CONVERTER_KINDS:
        key = f"{kind}.converter"
        named = validation.worker.get(key, SIMPLE_HEADERS if kind == "header" else "").strip()
        converter = find_converter(named)
        found[key] = converter.class_name if converter else named or None
        meant = _converter(kind, validation)
        found[key + _VERSION_KEY] = meant.version if meant else None
    return found


def _converter(kind: str, validation: Validation) -> ConverterPlugin | None:
    """The converter that is meant, by the config or by the worker."""
    found = _named(kind, validation)
    return found if found and found.serves(kind) else None


def _named(kind: str, validation: Validation) -> ConverterPlugin | None:
    """The same, even if it is none for this kind."""
    key = f"{kind}.converter"
    fallback = validation.worker.get(key, SIMPLE_HEADERS if kind == "header" else "")
    return find_converter(validation.config.get(key, fallback).strip())


def _recommended(name: str, validation: Validation) -> tuple[str, ...]:
    if name == "connector.plugin.version":
        return (validation.connector.version,)
    kind, _, rest = name.partition(".")
    if kind in CONVERTER_KINDS:
        converter = _converter(kind, validation)
        if rest == "converter" + _VERSION_KEY:
            return (converter.version,) if converter else ()
        return tuple(converters_for(kind)) if rest == "converter" else ()
    for one in validation.declared:
        if name == one.prefix + TYPE:
            return recommended(one.family)
        if name == one.prefix + VERSION:
            return (one.version,) if one.version else ()
    return ()


def _overrides(validation: Validation) -> list[str]:
    """Client settings of the kind that this connector uses."""
    prefix = _OVERRIDES[validation.connector.plugin.kind]
    return [key for key in validation.config if key.startswith(prefix)]


def _checked(setting: Setting, validation: Validation, errors: list[str]) -> CheckedSetting:
    value = _shown(setting, validation, has_errors=bool(errors))
    if value is not None and setting.type is Type.PASSWORD:
        value = "[hidden]"
    recommended = _recommended(setting.name, validation)
    kind, _, rest = setting.name.partition(".")
    is_moot = rest == "converter" + _VERSION_KEY and _named(kind, validation) is None
    return CheckedSetting(setting.name, setting, value, recommended, tuple(errors), not is_moot)


def _shown(setting: Setting, validation: Validation, *, has_errors: bool) -> str | None:
    """The value as it is understood; what cannot be understood is null."""
    if setting.name in validation.nulls:
        return None
    text = validation.config.get(setting.name)
    if text is None:
        if setting.name.endswith(".converter.converter.type"):
            return setting.name.partition(".")[0]
        return None if setting.is_required else text_of(setting.default)
    if setting.type is Type.LIST:
        return ",".join(item.strip() for item in text.split(","))
    if setting.type is Type.CLASS:
        return _class(setting.name, text.strip(), validation)
    value = setting.value_of(text)
    # A placeholder of a config provider is no number, and yet nothing is wrong with it.
    return text if value is None and not has_errors else text_of(value)


def _class(key: str, text: str, validation: Validation) -> str | None:
    """The class in full; null if we know that it is none."""
    for one in validation.declared:
        if key == one.prefix + TYPE:
            return one.full_name
    if key not in _CONVERTERS:
        return text
    converter = find_converter(text)
    return converter.class_name if converter else None
