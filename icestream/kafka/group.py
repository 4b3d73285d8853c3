"""A worker's place in its group, kept by Kafka's group protocol. Used by distributed workers.

librdkafka speaks this protocol for consumers only; kafka-python's coordinator is made to be extended.
The group's type is Kafka Connect's, its protocol is ours: Kafka refuses to mix our workers with Java's.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from kafka import errors as kafka_python
from kafka.coordinator.base import BaseCoordinator
from kafka.metrics import MetricConfig, Metrics
from kafka.net.compat import KafkaNetClient

from icestream.api.errors import PreconditionError, SourceUnavailable
from icestream.kafka.connection import Connection
from icestream.kafka.group_connection import settings_of
from icestream.kafka.timing import Timing

_TYPE: Final = "connect"
PROTOCOL: Final = "icestream-v1"
_LEAVE_MS: Final = 3_000
_METRICS: Final = "connect"
"""How the groups of Kafka Connect's own client metrics begin."""

_LOG = logging.getLogger(__name__)
logging.getLogger("kafka").setLevel(logging.CRITICAL)
"""What goes wrong comes back as an exception, and is told once, in our words."""


@dataclass(frozen=True)
class Joined:
    """What a member learns when a rebalance is over."""

    generation: int
    member_id: str
    assignment: bytes
    seconds: float = 0.0
    """How long it took."""


@dataclass(frozen=True)
class GroupNumbers:
    """What the client of the group counts, under the names of Kafka's Java clients."""

    coordinator: Mapping[str, float] = field(default_factory=dict)
    network: Mapping[str, float] = field(default_factory=dict)
    is_rebalancing: bool = False


class Rules(Protocol):
    """What the members tell each other; the bytes mean nothing to Kafka."""

    def introduction(self) -> bytes:
        """What this member says of itself when it joins."""

    def assignments(self, leader: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Asked of the member that Kafka chose as leader: from introductions to assignments."""


class GroupMember:
    """Heartbeats go on in a thread of their own; `poll` joins when it has to, and never waits for long."""

    def __init__(
        self,
        group: str,
        connection: Connection,
        timing: Timing,
        rules: Rules,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._timing = timing
        self._clock = clock
        self._metrics = Metrics(MetricConfig(samples=2, time_window_ms=30_000))
        self._logs_in = connection.uses_sasl or connection.uses_tls
        self._refused_logins = 0
        self._rejoins_since: float | None = None
        self._client = KafkaNetClient(
            request_timeout_ms=timing.session_timeout,
            reconnect_backoff_max_ms=1_000,
            metrics=self._metrics,
            metric_group_prefix=_METRICS,
            **settings_of(connection),
        )
        self._client._net.start()
        self._member = _Member(self._client, group, timing, rules, self._metrics)
        self._is_known = False
        self._has_left = False
        self._last_heard = clock()
        self._woken = threading.Event()

    def poll(self, seconds: float) -> Joined | None:
        """Join if the group asks for it, else wait; returns what a rebalance brought, once."""
        try:
            return self._poll(seconds)
        except kafka_python.InconsistentGroupProtocolError:
            raise PreconditionError(
                f"group '{self._group}' has members that are not Icestream workers, such as workers of Kafka "
                "Connect; stop them first, or choose another group.id"
            ) from None
        except kafka_python.KafkaError as error:
            if isinstance(error, kafka_python.SaslAuthenticationFailedError):
                self._refused_logins += 1
            raise SourceUnavailable(f"group '{self._group}': {error}") from error

    def _poll(self, seconds: float) -> Joined | None:
        if self._has_left:
            self._has_left = False
            self._last_heard = self._clock()
        if not self._is_known:
            self._client._manager.bootstrap(timeout_ms=int(seconds * 1000))
            self._is_known = True
        self._member.poll_heartbeat()
        if self._member.need_rejoin():
            if self._rejoins_since is None:
                self._rejoins_since = self._clock()
            self._member.ensure_active_group(timeout_ms=int(seconds * 1000))
        else:
            self._woken.wait(seconds)
            self._woken.clear()
        joined = self._member.take_joined()
        if joined is not None or self._member.is_waiting_for_others():
            self._last_heard = self._clock()
        return joined if joined is None else self._timed(joined)

    def _timed(self, joined: Joined) -> Joined:
        began, self._rejoins_since = self._rejoins_since, None
        return replace(joined, seconds=0.0 if began is None else self._clock() - began)

    def numbers(self) -> GroupNumbers:
        """For metrics; for any thread."""
        found = self._metrics.metrics.copy()
        by_group: dict[str, dict[str, float]] = {}
        for name, metric in found.items():
            by_group.setdefault(name.group, {})[name.name] = float(metric.value())
        network = by_group.get(f"{_METRICS}-metrics", {})
        # Kafka counts no login where nobody logs in; a connection that was made is one that was let in.
        made = network.get("connection-creation-rate", 0.0) if self._logs_in else 0.0
        network |= {
            "successful-authentication-rate": made,
            "failed-authentication-total": self._refused_logins,
            # The client does not measure how long it reads and writes.
            "io-ratio": math.nan,
        }
        coordinator = by_group.get(f"{_METRICS}-coordinator-metrics", {})
        return GroupNumbers(coordinator, network, self._rejoins_since is not None)

    def rejoin(self) -> None:
        """Ask for a rebalance: something changed that all must know."""
        self._member.request_rejoin()
        self._woken.set()

    def leave(self) -> None:
        """Leave for now; the next poll joins again."""
        if self._has_left:
            return
        self._has_left = True
        try:
            self._member.maybe_leave_group(timeout_ms=_LEAVE_MS)
        except kafka_python.KafkaError as error:
            _LOG.warning("could not leave group '%s': %s", self._group, error)
        self._member.request_rejoin()

    @property
    def is_cut_off(self) -> bool:
        """Whether the others must by now believe that this member is dead."""
        heard = max(self._last_heard, self._member.heartbeat.last_receive)
        return not self._has_left and bool((self._clock() - heard) * 1000 >= self._timing.session_timeout)

    def close(self) -> None:
        """Leave, so that the others need not wait for the session to end."""
        try:
            self._member.close(timeout_ms=_LEAVE_MS)
        except kafka_python.KafkaError as error:
            _LOG.warning("could not leave group '%s': %s", self._group, error)
        finally:
            self._client.close()


class _Member(BaseCoordinator):  # type: ignore[misc]
    def __init__(
        self, client: KafkaNetClient, group: str, timing: Timing, rules: Rules, metrics: Metrics
    ) -> None:
        super().__init__(
            client,
            metrics=metrics,
            metric_group_prefix=_METRICS,
            group_id=group,
            session_timeout_ms=timing.session_timeout,
            heartbeat_interval_ms=timing.heartbeat_interval,
            max_poll_interval_ms=timing.rebalance_timeout,
            request_timeout_ms=timing.session_timeout,
            api_version=(3, 0),
        )
        self._rules = rules
        self._joined: Joined | None = None

    def take_joined(self) -> Joined | None:
        joined, self._joined = self._joined, None
        return joined

    def is_waiting_for_others(self) -> bool:
        """Whether Kafka holds our request to join until all members have asked."""
        in_flight = self._join_task is not None and not self._join_task.is_done
        return bool(in_flight and self._client.connected(self.coordinator_id))

    # What BaseCoordinator asks for

    def protocol_type(self) -> str:
        return _TYPE

    def group_protocols(self) -> Sequence[tuple[str, bytes]]:
        return [(PROTOCOL, self._rules.introduction())]

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        introductions = {member.member_id: bytes(member.metadata) for member in members}
        return dict(self._rules.assignments(leader_id, introductions))

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        self._joined = Joined(generation, member_id, bytes(member_assignment_bytes))
