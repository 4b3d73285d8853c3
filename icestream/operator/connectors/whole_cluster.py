"""All connectors of a cluster at once: those of its resources are reconciled, others deleted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from icestream.api.errors import IcestreamError, NotFoundError
from icestream.operator.connectors.borders import ConnectorObjects, ConnectorRest, Timing
from icestream.operator.connectors.facts import ConnectorOutcome
from icestream.operator.connectors.recent_actions import RecentActions
from icestream.operator.connectors.reconcile import reconcile_connector
from icestream.operator.connectors.statuses import unready_outcome

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Surplus:
    """Connectors without a resource: those that were deleted, and why the others could not be."""

    deleted: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


def reconcile_connectors(
    resources: Iterable[Mapping[str, Any]],
    rest: ConnectorRest,
    objects_of: Callable[[Mapping[str, Any]], ConnectorObjects],
    recent: RecentActions,
    timing: Timing | None = None,
) -> dict[str, ConnectorOutcome]:
    """By name. What is wrong with one is told in its own outcome, and keeps no other from its turn."""
    timing = timing or Timing()
    outcomes = {}
    for resource in resources:
        name = str(resource["metadata"]["name"])
        try:
            outcomes[name] = reconcile_connector(resource, rest, objects_of(resource), recent, timing)
        except Exception as error:
            _log.exception("the turn of connector %s failed", name)
            reason, message = type(error).__name__, "the operator failed at this connector; see its log"
            outcomes[name] = unready_outcome(resource, reason, message, timing.now())
    return outcomes


def delete_surplus(rest: ConnectorRest, with_resource: Callable[[], AbstractSet[str]]) -> Surplus:
    """Only for a cluster with `strimzi.io/use-connector-resources`.

    `with_resource` lists the names in the API server, not in a cache, and is asked after the workers: a
    connector that is made meanwhile is then in no list, or in both. Raises if either cannot be asked.
    """
    running = rest.names()
    if not running:
        return Surplus()
    wanted = with_resource()
    deleted, failed = [], {}
    for name in sorted(set(running) - wanted):
        try:
            delete_connector(rest, name)
            deleted.append(name)
        except IcestreamError as error:
            failed[name] = str(error)
    return Surplus(tuple(deleted), failed)


def delete_connector(rest: ConnectorRest, name: str) -> None:
    """Its resource is gone. Nobody minds if the connector is, too."""
    _log.info("connector %s has no resource; it is deleted", name)
    with suppress(NotFoundError):
        rest.delete(name)
