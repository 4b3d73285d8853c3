"""KafkaConnector resources, carried out through the REST API of workers. The operator's loop calls this."""

from icestream.operator.connectors.borders import ConnectorObjects, ConnectorRest, Timing
from icestream.operator.connectors.facts import ConnectorOutcome, ConnectorSpec
from icestream.operator.connectors.parse import InvalidConnector, parse_connector
from icestream.operator.connectors.placement import (
    Unplaced,
    cluster_of,
    unplaced,
    uses_connector_resources,
)
from icestream.operator.connectors.recent_actions import RecentActions
from icestream.operator.connectors.reconcile import reconcile_connector
from icestream.operator.connectors.rest import workers_at
from icestream.operator.connectors.statuses import paused_outcome, unready_outcome
from icestream.operator.connectors.whole_cluster import (
    Surplus,
    delete_connector,
    delete_surplus,
    reconcile_connectors,
)

__all__ = [
    "ConnectorObjects",
    "ConnectorOutcome",
    "ConnectorRest",
    "ConnectorSpec",
    "InvalidConnector",
    "RecentActions",
    "Surplus",
    "Timing",
    "Unplaced",
    "cluster_of",
    "delete_connector",
    "delete_surplus",
    "parse_connector",
    "paused_outcome",
    "reconcile_connector",
    "reconcile_connectors",
    "unplaced",
    "unready_outcome",
    "uses_connector_resources",
    "workers_at",
]
