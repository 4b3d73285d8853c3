"""Configs as somebody edits them who must not see their secrets: changes to what is stored, and reports about
them. Used by the console.

Only changed keys travel. A secret is shown as a mask, and a mask that comes back is refused: it would replace
the secret that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem, UnknownConnectorClass
from icestream.cluster.configs.masking import MASK, hidden_config, is_secret, shown_value
from icestream.cluster.configs.secrets import discreet
from icestream.cluster.views import CheckedSetting, ConfigReport

Changes = Mapping[str, str | None]
"""New values of keys; None removes one."""


@dataclass(frozen=True)
class HiddenReport:
    """A report about an edited config that tells no secret of it."""

    report: ConfigReport
    secrets: tuple[str, ...]
    """Keys whose values are never shown."""
    others: Mapping[str, str]
    """Keys of the config that the report says nothing of: they are kept all the same."""


def edited(stored: Config, changes: Changes) -> dict[str, str]:
    """The config after the changes; raises ConfigError if one of them is a mask, or renames the connector."""
    refuse_masks(changes)
    if "name" in changes and "name" in stored and changes["name"] != stored["name"]:
        raise ConfigError(
            [Problem("name", f"the name '{stored['name']}' cannot change; create another connector")]
        )
    return {key: value for key, value in {**stored, **changes}.items() if value is not None}


def refuse_masks(changes: Changes) -> None:
    masks = [
        Problem(
            key,
            f"the value of '{key}' has {MASK} in it, which stands for a secret that is not shown; write the "
            "whole value, or leave the key as it is",
        )
        for key, value in changes.items()
        if value is not None and MASK in value
    ]
    if masks:
        raise ConfigError(masks)


def hidden_report(report: ConfigReport, config: Config) -> HiddenReport:
    """The report about a config without its secrets; messages may quote values."""
    definitions = {one.name: one.definition for one in report.settings}
    keys = dict.fromkeys((*(one.name for one in report.settings), *config))
    secrets = tuple(key for key in keys if is_secret(key, definitions.get(key)))
    shown = hidden_config(config, secrets)
    quoted = {config[key]: MASK for key in secrets if key in config and shown[key] != config[key]}
    settings = tuple(
        replace(
            one,
            # Of a secret, Kafka Connect's report has a mask even for a placeholder.
            value=shown.get(one.name, one.value) if one.name in secrets else _masked(one.value),
            errors=tuple(shown_value(discreet(error, quoted)) for error in one.errors),
        )
        for one in report.settings
    )
    known = {one.name for one in settings}
    return HiddenReport(
        replace(
            report,
            settings=settings,
            warnings=tuple(shown_value(discreet(one, quoted)) for one in report.warnings),
        ),
        secrets,
        {key: value for key, value in shown.items() if key not in known},
    )


def _masked(value: str | None) -> str | None:
    return None if value is None else shown_value(value)


def report_of_unknown_class(config: Config, refused: UnknownConnectorClass) -> ConfigReport:
    """Without its class nothing can be said about the other keys; that is said at its key."""
    messages = tuple(problem.message for problem in refused.problems)
    value = config.get("connector.class")
    return ConfigReport(value or "", (CheckedSetting("connector.class", None, value, errors=messages),), ())
