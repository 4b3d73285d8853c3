"""Who of several operators works: a Lease of coordination.k8s.io. Started by the operator's process.

The holder renews; the others wait until the lease has not been renewed for as long as it says, counted by
their own clocks. Who cannot renew in time must end its process: another one may have begun.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.operator.api_server import ApiConflict, ApiError, ApiServer
from icestream.operator.kinds import Kind

_LOG = logging.getLogger(__name__)
LEASE_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 10.0
"""Without a renewal for so long, the holder gives up: before anybody else may begin."""
RETRY_SECONDS: Final = 2.0
GUARD_SECONDS: Final = 0.5


LEASE: Final = Kind("Lease", "coordination.k8s.io", ("v1",), "leases")


@dataclass(frozen=True)
class Sighting:
    """A state of the lease, and when we first saw it: clocks of other machines tell nothing."""

    holder: str
    renewed: str
    first_seen: float


@dataclass(frozen=True)
class Sight:
    """What one look at the lease comes to."""

    sighting: Sighting
    may_take: bool


def look(spec: Mapping[str, Any], me: str, last: Sighting | None, now: float) -> Sight:
    """Whether the lease is ours to renew or free to take, by our own clock."""
    holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
    if last is not None and (last.holder, last.renewed) == (holder, renewed):
        sighting = last
    else:
        sighting = Sighting(holder, renewed, now)
    duration = float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)
    return Sight(sighting, holder in ("", me) or now - sighting.first_seen > duration)


class Leadership:
    """`turn` is one try; `wait_for` and `keep` repeat it."""

    def __init__(
        self,
        server: ApiServer,
        namespace: str,
        name: str,
        me: str,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._name = name
        self._me = me
        self._clock = clock
        self._wall_clock = wall_clock
        self._last: Sighting | None = None
        self._renewed = clock()

    def turn(self) -> bool:
        """Take or renew the lease; False: somebody else has it, or we do not know."""
        began = self._clock()
        try:
            is_ours = self._take()
        except ApiConflict:
            return False
        except ApiError as error:
            _LOG.warning("%s", error)
            return False
        if is_ours:
            # From before the request: by then, the others had not seen it yet.
            self._renewed = began
            self._last = None
        return is_ours

    def _take(self) -> bool:
        found = self._server.get(LEASE, self._namespace, self._name)
        if found is None:
            self._server.create(LEASE, self._lease({}, {}))
            return True
        spec = found.get("spec") or {}
        sight = look(spec, self._me, self._last, self._clock())
        self._last = sight.sighting
        if not sight.may_take:
            return False
        self._server.replace(LEASE, self._lease(found["metadata"], spec))
        return True

    def _lease(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        now = self._wall_clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_same = spec.get("holderIdentity") == self._me
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "namespace": self._namespace, "name": self._name},
            "spec": {
                "holderIdentity": self._me,
                "leaseDurationSeconds": int(LEASE_SECONDS),
                "acquireTime": spec.get("acquireTime", now) if is_same else now,
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (0 if is_same else 1),
            },
        }

    @property
    def is_lost(self) -> bool:
        return self._clock() - self._renewed > RENEW_SECONDS

    def wait_for(self, stop: threading.Event) -> bool:
        """Until the lease is ours; False: told to stop before."""
        while not stop.is_set():
            if self.turn():
                _LOG.info("%s holds the lease %s/%s", self._me, self._namespace, self._name)
                return True
            stop.wait(RETRY_SECONDS)
        return False

    def keep(self, stop: threading.Event, lost: Callable[[], None]) -> None:
        """Renew until told to stop; `lost` is called once when that fails for too long."""
        while not stop.wait(RETRY_SECONDS):
            if not self.turn() and (self.is_lost or self._is_of_another()):
                lost()
                return

    def guard(self, stop: threading.Event, lost: Callable[[], None]) -> None:
        """Beside `keep`, in a thread of its own: a renewal may hang for longer than the lease lasts."""
        while not stop.wait(GUARD_SECONDS):
            if self.is_lost:
                lost()
                return

    def _is_of_another(self) -> bool:
        return self._last is not None and self._last.holder not in ("", self._me)

    def release(self) -> None:
        """At an orderly end, so that the next one need not wait; what goes wrong does not matter."""
        try:
            found = self._server.get(LEASE, self._namespace, self._name)
            if found is not None and (found.get("spec") or {}).get("holderIdentity") == self._me:
                spec = {**found["spec"], "holderIdentity": None, "leaseDurationSeconds": 1}
                self._server.replace(LEASE, {**found, "spec": spec})
        except ApiError as error:
            _LOG.info("%s", error)
