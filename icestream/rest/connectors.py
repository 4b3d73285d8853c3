"""Handlers under `/connectors`: each a line or two of translation."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from icestream.api.errors import NotFoundError
from icestream.cluster.service import ConnectorService
from icestream.cluster.stores.connector_store import target_from
from icestream.rest.errors import BadRequest, Forbidden, MalformedBody
from icestream.rest.exchange import Answer, Call, Handler, checked_name, config_from, text_from
from icestream.rest.shapes import info_json, progress_json, status_json, task_json, task_status_json

_EXPANSIONS = {
    "status": lambda service, name: status_json(service.status(name)),
    "info": lambda service, name: info_json(service.info(name)),
    "progress": lambda service, name: progress_json(service.progress(name)),
}
# Java's `trim` takes away control characters and blanks, but no other space.
_TRIMMED = "".join(map(chr, range(33)))
_UNQUOTED = "!$&'()*+,;=:@~"


def list_connectors(service: ConnectorService, call: Call) -> Answer:
    if "expand" not in call.query:
        return Answer(body=service.names())
    expanded: dict[str, Any] = {}
    for name in service.names():
        try:
            expanded[name] = {
                what: _EXPANSIONS[what](service, name) for what in call.query["expand"] if what in _EXPANSIONS
            }
        except NotFoundError:
            # Deleted while we looked.
            continue
    return Answer(body=expanded)


def create_connector(service: ConnectorService, call: Call) -> Answer:
    document = call.json_object()
    if document is None:
        raise MalformedBody("The body is missing; send a connector with name and config")
    unknown = [key for key in document if key not in ("name", "config", "initial_state")]
    if unknown:
        raise MalformedBody(
            f"Unrecognized field '{unknown[0]}'; a connector has name, config and initial_state"
        )
    name = checked_name((text_from(document.get("name"), "the name") or "").strip(_TRIMMED))
    state = text_from(document.get("initial_state"), "initial_state")
    try:
        target = target_from(state if state != "" else "empty")
    except ValueError as error:
        raise MalformedBody(str(error)) from None
    config = _named(name, config_from(document.get("config")))
    info = service.create(name, config, target)
    return Answer(201, info_json(info), _location(call, name))


def read_connector(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=info_json(service.info(call.connector)))


def delete_connector(service: ConnectorService, call: Call) -> Answer:
    service.delete(call.connector)
    return Answer(204)


def read_config(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=dict(service.config(call.connector)))


def put_config(service: ConnectorService, call: Call) -> Answer:
    name = checked_name(call.connector)
    info, is_created = service.put_config(name, _named(name, call.config()))
    if is_created:
        return Answer(201, info_json(info), _location(call, name))
    return Answer(200, info_json(info))


def patch_config(service: ConnectorService, call: Call) -> Answer:
    document = call.json_object()
    if document is None:
        service.info(call.connector)
    return Answer(body=info_json(service.patch_config(call.connector, config_from(document))))


def read_status(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=status_json(service.status(call.connector)))


def restart_connector(service: ConnectorService, call: Call) -> Answer:
    include_tasks, only_failed = call.flag("includeTasks"), call.flag("onlyFailed")
    plan = service.restart(call.connector, include_tasks=include_tasks, only_failed=only_failed)
    if not include_tasks and not only_failed:
        return Answer(204)
    return Answer(202, status_json(plan))


def pause_connector(service: ConnectorService, call: Call) -> Answer:
    service.pause(call.connector)
    return Answer(202)


def resume_connector(service: ConnectorService, call: Call) -> Answer:
    service.resume(call.connector)
    return Answer(202)


def stop_connector(service: ConnectorService, call: Call) -> Answer:
    service.stop(call.connector)
    return Answer(204)


def list_tasks(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=[task_json(task) for task in service.tasks(call.connector)])


def read_task_status(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=task_status_json(service.task_status(call.connector, call.task)))


def restart_task(service: ConnectorService, call: Call) -> Answer:
    service.restart_task(call.connector, call.task)
    return Answer(204)


def read_topics(service: ConnectorService, call: Call) -> Answer:
    _require_tracking(call)
    return Answer(body={call.connector: {"topics": service.topics(call.connector)}})


def reset_topics(service: ConnectorService, call: Call) -> Answer:
    _require_tracking(call)
    if not call.topics.may_reset:
        raise Forbidden("Topic tracking reset is disabled.")
    service.reset_topics(call.connector)
    return Answer(202)


def _require_tracking(call: Call) -> None:
    if not call.topics.is_enabled:
        raise Forbidden("Topic tracking is disabled.")


def _named(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    included = config.get("name")
    if included is not None and included != name:
        raise BadRequest(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return {**config, "name": name}


def _location(call: Call, name: str) -> dict[str, str]:
    return {"Location": f"{call.base_url}/connectors/{quote(name, safe=_UNQUOTED, errors='replace')}"}


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/connectors"): list_connectors,
    ("POST", "/connectors"): create_connector,
    ("GET", "/connectors/{connector}"): read_connector,
    ("DELETE", "/connectors/{connector}"): delete_connector,
    ("GET", "/connectors/{connector}/config"): read_config,
    ("PUT", "/connectors/{connector}/config"): put_config,
    ("PATCH", "/connectors/{connector}/config"): patch_config,
    ("GET", "/connectors/{connector}/status"): read_status,
    ("POST", "/connectors/{connector}/restart"): restart_connector,
    ("PUT", "/connectors/{connector}/pause"): pause_connector,
    ("PUT", "/connectors/{connector}/resume"): resume_connector,
    ("PUT", "/connectors/{connector}/stop"): stop_connector,
    ("GET", "/connectors/{connector}/tasks"): list_tasks,
    ("GET", "/connectors/{connector}/tasks/{task}/status"): read_task_status,
    ("POST", "/connectors/{connector}/tasks/{task}/restart"): restart_task,
    ("GET", "/connectors/{connector}/topics"): read_topics,
    ("PUT", "/connectors/{connector}/topics/reset"): reset_topics,
}
