"""Handlers under `/connector-plugins`."""

from __future__ import annotations

from icestream.cluster.service import ConnectorService
from icestream.rest.errors import BadRequest
from icestream.rest.exchange import Answer, Call, Handler
from icestream.rest.shapes import definitions_json, plugin_json, report_json

_SUFFIX = "Connector"


def list_plugins(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=[plugin_json(plugin) for plugin in service.plugins()])


def read_plugin_config(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=definitions_json(service.plugin_config(str(call.path["plugin"]))))


def validate_config(service: ConnectorService, call: Call) -> Answer:
    plugin, config = str(call.path["plugin"]), call.config()
    included = config.get("connector.class")
    if included is not None and not _short(included).endswith(_short(plugin)):
        raise BadRequest(f"Included connector type {included} does not match request type {plugin}")
    return Answer(body=report_json(service.validate(config)))


def _short(name: str) -> str:
    return name.removesuffix(_SUFFIX) if len(name) > len(_SUFFIX) else name


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/connector-plugins"): list_plugins,
    ("GET", "/connector-plugins/{plugin}/config"): read_plugin_config,
    ("PUT", "/connector-plugins/{plugin}/config/validate"): validate_config,
}
