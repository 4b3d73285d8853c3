"""Handlers about configs as people edit them: read, validate, create, change. No answer has a secret in it.

Shapes: docs/console-api.md.
"""

from __future__ import annotations

from typing import Any, Final

from icestream.api.errors import ConfigChanged, ConfigError, Problem
from icestream.cluster.configs.edits import Changes, HiddenReport, edited, refuse_masks
from icestream.cluster.configs.masking import hidden_config, masks_of
from icestream.cluster.configs.reports import settings_of
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.console_settings import Level
from icestream.cluster.stores.connector_store import target_from
from icestream.rest.console.exchange import Asked, Console, Route, Table
from icestream.rest.errors import BadRequest, error_body
from icestream.rest.exchange import Answer, checked_name, config_from, text_from
from icestream.rest.shapes import report_json

_SHOWN_PROBLEMS: Final = 3


def read_config(console: Console, asked: Asked) -> Answer:
    """What an editor begins with: the config with masks, which of its keys have one, and its version."""
    return Answer(body=_editable(console.service, asked.connector))


def validate(console: Console, asked: Asked) -> Answer:
    """Changes to the stored config of the connector, or to nothing if none is named."""
    changes = config_from(asked.json_object() or {})
    deep = asked.flag("deep")
    try:
        found = console.service.validate_edited(changes, asked.optional("connector") or None, deep=deep)
    except ConfigError as refused:
        return _refused(refused, changes)
    return Answer(body={**_report(found), "deep": deep})


def create(console: Console, asked: Asked) -> Answer:
    document = asked.json_object() or {}
    unknown = [key for key in document if key not in ("name", "config", "initial_state")]
    if unknown:
        raise BadRequest(f"'{unknown[0]}' is no part of a connector, which has name, config, initial_state")
    name = checked_name((text_from(document.get("name"), "the name") or "").strip())
    if not name:
        raise BadRequest("The connector has no name; write one")
    try:
        target = target_from(text_from(document.get("initial_state"), "initial_state") or None)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    config = {**config_from(document.get("config")), "name": name}
    try:
        refuse_masks(config)
        console.service.create(name, config, target)
    except ConfigError as refused:
        return _refused(refused, config)
    return Answer(201, _editable(console.service, name))


def change_config(console: Console, asked: Asked) -> Answer:
    """Changes of single keys, null removes one; `If-Match` has the version that they were made to."""
    name, changes = asked.connector, config_from(asked.json_object() or {})
    version = asked.header("if-match").strip().strip('"')
    if not version:
        raise BadRequest("The request has no If-Match; send the version that the changes were made to")
    service = console.service
    stored = service.config(name)
    try:
        edited(stored, changes)
        service.patch_config(name, changes, version)
    except ConfigChanged as conflict:
        # The page knows what it began with, and what was typed.
        now = _editable(service, name)
        return Answer(409, {**error_body(409, str(conflict)), "conflict": True, "now": now})
    except ConfigError as refused:
        return _refused(refused, {**stored, **changes})
    return Answer(body=_editable(service, name))


def _editable(service: ConnectorService, name: str) -> dict[str, Any]:
    config = service.config(name)
    found = service.validate_edited({}, name, deep=False)
    shown = hidden_config(config, found.secrets)
    return {
        "name": name,
        "version": service.config_version(name),
        "config": shown,
        # Also a value with a secret inside, such as an address: what is shown must not come back.
        "masked": [key for key in config if shown[key] != config[key]],
        "state": service.status(name).state.value,
    }


def _report(found: HiddenReport) -> dict[str, Any]:
    return {
        "warnings": [],
        **report_json(found.report),
        "secrets": list(found.secrets),
        "others": dict(found.others),
    }


def _refused(refused: ConfigError, changes: Changes) -> Answer:
    """Kafka Connect's answer is one text; here each message is also with its key. Messages quote values."""
    config = {key: value for key, value in changes.items() if value is not None}
    masks = masks_of(config, settings_of(config))
    problems = tuple(Problem(one.key, masks.text(one.message)) for one in refused.problems)
    errors: dict[str, list[str]] = {}
    for problem in problems:
        errors.setdefault(problem.key, []).append(problem.message)
    message = f"The config has {len(problems)} error(s): {_told(problems)}"
    return Answer(400, {**error_body(400, message), "errors": errors})


def _told(problems: tuple[Problem, ...]) -> str:
    more = len(problems) - _SHOWN_PROBLEMS
    told = "; ".join(problem.message for problem in problems[:_SHOWN_PROBLEMS])
    return f"{told}; and {more} more" if more > 0 else told


ROUTES: Final[Table] = {
    ("GET", "config"): Route(read_config, Level.EDIT),
    ("PATCH", "config"): Route(change_config, Level.EDIT, waits_long=True),
    ("POST", "create"): Route(create, Level.EDIT, waits_long=True),
    ("POST", "validate"): Route(validate, Level.EDIT, waits_long=True),
}
