"""Handlers under `/connector-plugins`."""

from __future__ import annotations

from icestream.api.errors import UnknownConnectorClass
from icestream.cluster.service import ConnectorService
from icestream.plugins import all_plugins, connector_plugins
from icestream.rest.errors import BadRequest, MalformedBody
from icestream.rest.exchange import Answer, Call, Handler
from icestream.rest.shapes import definitions_json, plugins_json, report_json

_SUFFIX = "Connector"


def list_plugins(service: ConnectorService, call: Call) -> Answer:
    only_connectors = call.flag("connectorsOnly", default=True)
    return Answer(body=plugins_json(connector_plugins() if only_connectors else all_plugins()))


def read_plugin_config(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=definitions_json(service.plugin_config(call.path["plugin"])))


def validate_config(service: ConnectorService, call: Call) -> Answer:
    plugin, config = call.path["plugin"], call.config()
    included = config.get("connector.class")
    if included is not None and not _short(included).endswith(_short(plugin)):
        raise BadRequest(f"Included connector type {included} does not match request type {plugin}")
    try:
        return Answer(body=report_json(service.validate(config)))
    except UnknownConnectorClass as error:
        # 400 when a connector is created, 500 here: so Kafka Connect does.
        raise MalformedBody(str(error)) from None


def _short(name: str) -> str:
    return name.removesuffix(_SUFFIX) if len(name) > len(_SUFFIX) else name


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/connector-plugins"): list_plugins,
    ("GET", "/connector-plugins/{plugin}/config"): read_plugin_config,
    ("PUT", "/connector-plugins/{plugin}/config/validate"): validate_config,
}
