"""A worker's place in its group, kept by Kafka's group protocol. Used by distributed workers.

librdkafka speaks this protocol for consumers only; kafka-python's coordinator is made to be extended.
The group's type is Kafka Connect's, its protocol is ours: Kafka refuses to mix our workers with Java's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kafka import errors as kafka_python
from kafka.coordinator.base import BaseCoordinator
from kafka.net.compat import KafkaNetClient

from icestream.api.errors import PreconditionError, SourceUnavailable
from icestream.kafka.connection import Connection
from icestream.kafka.group_connection import settings_of
from icestream.kafka.timing import Timing

_TYPE: Final = "connect"
_PROTOCOL: Final = "icestream-v1"
_LEAVE_MS: Final = 3_000

_LOG = logging.getLogger(__name__)
logging.getLogger("kafka").setLevel(logging.CRITICAL)
"""What goes wrong comes back as an exception, and is told once, in our words."""


@dataclass(frozen=True)
class Joined:
    """What a member learns when a rebalance is over."""

    generation: int
    member_id: str
    assignment: bytes


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
        self._client = KafkaNetClient(
            request_timeout_ms=timing.session_timeout,
            reconnect_backoff_max_ms=1_000,
            **settings_of(connection),
        )
        self._client._net.start()
        self._member = _Member(self._client, group, timing, rules)
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
            self._member.ensure_active_group(timeout_ms=int(seconds * 1000))
        else:
            self._woken.wait(seconds)
            self._woken.clear()
        joined = self._member.take_joined()
        if joined is not None or self._member.is_waiting_for_others():
            self._last_heard = self._clock()
        return joined

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
    def __init__(self, client: KafkaNetClient, group: str, timing: Timing, rules: Rules) -> None:
        super().__init__(
            client,
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
        return [(_PROTOCOL, self._rules.introduction())]

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        introductions = {member.member_id: bytes(member.metadata) for member in members}
        return dict(self._rules.assignments(leader_id, introductions))

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        self._joined = Joined(generation, member_id, bytes(member_assignment_bytes))
