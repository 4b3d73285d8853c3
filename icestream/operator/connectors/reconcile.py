"""One turn of one connector: what its resource asks for is done through REST, and told in its status.

The loop calls it, in a thread, under the lock of the connector's cluster. The order is Strimzi's: config,
state, offsets, restarts, status, restart by itself, topics. Nothing that a connector does makes it raise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from icestream.api.errors import IcestreamError, NotFoundError, NotReadyError, WorkerUnreachable
from icestream.operator.conditions import Condition, not_ready, warning
from icestream.operator.connectors import auto_restart, requests, states
from icestream.operator.connectors.borders import ConnectorObjects, ConnectorRest, Timing
from icestream.operator.connectors.facts import (
    CONNECTOR_OFFSETS,
    RESTART,
    RESTART_TASK,
    AutoRestart,
    ConnectorOutcome,
    ConnectorSpec,
)
from icestream.operator.connectors.offsets import REASONS, manage_offsets
from icestream.operator.connectors.parse import InvalidConnector, parse_connector
from icestream.operator.connectors.recent_actions import RecentActions
from icestream.operator.connectors.statuses import (
    annotations_of,
    connector_conditions,
    is_in_between,
    is_reconciliation_paused,
    paused_outcome,
    previous_status,
    status_of,
    uid_of,
    unready_outcome,
)

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
_FIRST_PAUSE: Final = 0.2
_SOON: Final = 5.0
"""Seconds until something that was just done can be seen, or that failed may work."""

T = TypeVar("T")


def reconcile_connector(
    resource: Mapping[str, Any],
    rest: ConnectorRest,
    objects: ConnectorObjects,
    recent: RecentActions,
    timing: Timing | None = None,
) -> ConnectorOutcome:
    timing = timing or Timing()
    if is_reconciliation_paused(resource):
        return paused_outcome(resource, timing.now())
    try:
        spec = parse_connector(resource)
    except InvalidConnector as error:
        return unready_outcome(resource, "InvalidResourceException", str(error), timing.now())
    return _Turn(resource, spec, rest, objects, recent, timing).run()


class _Turn:
    def __init__(
        self,
        resource: Mapping[str, Any],
        spec: ConnectorSpec,
        rest: ConnectorRest,
        objects: ConnectorObjects,
        recent: RecentActions,
        timing: Timing,
    ) -> None:
        self._resource, self._spec = resource, spec
        self._rest, self._objects, self._recent, self._timing = rest, objects, recent, timing
        self._uid = uid_of(resource)
        self._warnings = [warning(one.reason, one.message) for one in spec.warnings]
        self._has_acted = False
        """Whether the connector starts anew because of this turn: its status is then about to change."""
        self._requeue: list[float] = []

    def run(self) -> ConnectorOutcome:
        failure: IcestreamError | None = None
        status: Mapping[str, Any] | None = None
        topics: list[str] | None = None
        restarted = self._recent.last_auto_restart(
            self._uid, auto_restart.from_status(previous_status(self._resource))
        )
        try:
            self._configure()
            self._answer_annotations()
        except IcestreamError as error:
            failure = error
        try:
            if not isinstance(failure, WorkerUnreachable):
                status = self._status(is_expected=failure is None)
                restarted = self._restart_if_failed(status, restarted)
                topics = self._topics()
        except IcestreamError as error:
            failure = failure or error
        return self._outcome(self._told(failure) if failure else None, status, topics, restarted)

    def _outcome(
        self,
        failure: Condition | None,
        status: Mapping[str, Any] | None,
        topics: list[str] | None,
        restarted: AutoRestart | None,
    ) -> ConnectorOutcome:
        wanted = connector_conditions(failure, status, self._warnings)
        if status is not None and (self._has_acted or is_in_between(status, self._spec.state)):
            self._requeue.append(_SOON)
        return ConnectorOutcome(
            status_of(self._resource, self._spec, wanted, status, topics, restarted, self._timing.now()),
            min(self._requeue, default=None),
            wanted[0].type == "Ready",
        )

    # Config and state

    def _configure(self) -> None:
        try:
            stored = self._rest.config(self._spec.name)
        except NotFoundError:
            self._create()
            return
        if stored != self._spec.config:
            _log.info("the config of connector %s differs from its resource; it is set", self._spec.name)
            self._patiently(lambda: self._rest.put_config(self._spec.name, self._spec.config))
            self._has_acted = True
        self._move_to_state()

    def _create(self) -> None:
        _log.info("connector %s is created, %s", self._spec.name, self._spec.state)
        state = self._spec.state.upper()
        self._patiently(lambda: self._rest.create(self._spec.name, self._spec.config, state))
        self._has_acted = True

    def _move_to_state(self) -> None:
        state = states.connector_state(self._status())
        verb = states.step(state, self._spec.state)
        if verb is None:
            return
        _log.info("connector %s is %s and has to be %s", self._spec.name, state, self._spec.state)
        act = {"pause": self._rest.pause, "resume": self._rest.resume, "stop": self._rest.stop}[verb]
        self._patiently(lambda: act(self._spec.name))
        self._has_acted = True

    # Annotations

    def _answer_annotations(self) -> None:
        self._answer(CONNECTOR_OFFSETS, "ConnectorOffsets", self._offsets)
        self._answer(RESTART, "RestartConnector", self._restart)
        self._answer(RESTART_TASK, "RestartConnectorTask", self._restart_task)

    def _answer(self, annotation: str, reason: str, act: Callable[[str], bool]) -> None:
        """Acts once on an annotation, then removes it. It stays if acting fails; if only the removal does,
        the next turn removes it without acting again."""
        given = annotations_of(self._resource).get(annotation)
        if given is None and not self._recent.has_unremoved(self._uid, annotation):
            return
        try:
            value = self._objects.annotation(annotation)
            if value is None:
                self._recent.forget_answer(self._uid, annotation)
                return
            if not self._recent.has_answered(self._uid, annotation, value):
                if not act(value):
                    return
                self._recent.note_answer(self._uid, annotation, value)
            self._objects.remove_annotation(annotation, value)
        except requests.InvalidRequest as error:
            self._warnings.append(warning(reason, str(error)))
        except IcestreamError as error:
            if annotation == CONNECTOR_OFFSETS:
                reason = REASONS.get(given or "", reason)
            self._warnings.append(warning(reason, f"{annotation}: {error}"))
            self._requeue.append(_SOON)
        else:
            self._recent.forget_answer(self._uid, annotation)

    def _offsets(self, value: str) -> bool:
        verb = requests.offsets_verb_from(value)
        state = states.connector_state(self._status())
        self._patiently(lambda: manage_offsets(verb, self._spec, state, self._rest, self._objects))
        return True

    def _restart(self, value: str) -> bool:
        asked = requests.restart_from(value)
        if asked is None:
            return False
        self._patiently(
            lambda: self._rest.restart(
                self._spec.name, include_tasks=asked.include_tasks, only_failed=asked.only_failed
            )
        )
        self._has_acted = True
        return True

    def _restart_task(self, value: str) -> bool:
        task = requests.task_from(value)
        self._patiently(lambda: self._rest.restart_task(self._spec.name, task))
        self._has_acted = True
        return True

    # Status

    def _status(self, *, is_expected: bool = True) -> dict[str, Any]:
        """A connector that was just made may have none yet; one that could not be made never has."""
        busy = (NotReadyError, NotFoundError) if is_expected else (NotReadyError,)
        return self._patiently(lambda: self._rest.status_answer(self._spec.name), busy)

    def _topics(self) -> list[str] | None:
        """None where a worker does not keep count of them."""
        try:
            return sorted(map(str, self._rest.topics(self._spec.name)))
        except WorkerUnreachable:
            raise
        except IcestreamError:
            return None

    def _restart_if_failed(self, status: Mapping[str, Any], last: AutoRestart | None) -> AutoRestart | None:
        """Told in the status first, and made then: a status that cannot be written must not let a connector
        be restarted at every turn."""
        if self._has_acted:
            return last
        failed = states.has_failed(status)
        decision = auto_restart.decide(self._spec.auto_restart, last, failed, self._timing.now())
        if decision.wait is not None:
            self._requeue.append(decision.wait.total_seconds() + 1)
        if decision.next is None:
            self._recent.forget_auto_restart(self._uid)
        if not decision.is_due or decision.next is None:
            return decision.next
        told = {**previous_status(self._resource), "autoRestart": auto_restart.in_status(decision.next)}
        try:
            self._objects.write_status(told)
            self._recent.note_auto_restart(self._uid, decision.next)
            _log.info("connector %s has failed; restart %d", self._spec.name, decision.next.count)
            self._rest.restart(self._spec.name, include_tasks=True, only_failed=True)
        except IcestreamError as error:
            self._warnings.append(warning("RestartConnector", f"automatic restart: {error}"))
        self._requeue.append(_SOON)
        return self._recent.last_auto_restart(self._uid, last)

    # Failures

    def _patiently(self, call: Callable[[], T], busy: tuple[type[Exception], ...] = (NotReadyError,)) -> T:
        """Again, with growing pauses, while the workers are busy: a rebalance takes seconds."""
        for attempt in range(_ATTEMPTS - 1):
            try:
                return call()
            except busy:
                self._timing.sleep(_FIRST_PAUSE * 2**attempt)
        return call()

    def _told(self, error: IcestreamError) -> Condition:
        _log.warning("connector %s: %s", self._spec.name, error)
        self._requeue.append(_SOON)
        reason = "ConnectException" if isinstance(error, WorkerUnreachable) else "ConnectRestException"
        return not_ready(reason, str(error))
