"""Whose the lease is, by clocks that do not agree."""

from __future__ import annotations

import threading
from typing import Any

from icestream.operator.lease import RENEW_SECONDS, Leadership, look


def test_a_lease_that_nobody_holds_or_that_is_ours_may_be_taken() -> None:
    assert look({}, "me", None, 0.0).may_take
    assert look({"holderIdentity": "me", "renewTime": "t"}, "me", None, 0.0).may_take


def test_a_lease_of_another_is_free_when_it_was_not_renewed_for_as_long_as_it_says() -> None:
    spec = {"holderIdentity": "other", "renewTime": "1970-01-01T00:00:00Z", "leaseDurationSeconds": 15}
    first = look(spec, "me", None, 100.0)
    # However old the time in it looks: that is the other's clock.
    assert not first.may_take
    assert not look(spec, "me", first.sighting, 114.0).may_take
    assert look(spec, "me", first.sighting, 116.0).may_take


def test_a_renewal_begins_the_wait_anew() -> None:
    spec = {"holderIdentity": "other", "renewTime": "a", "leaseDurationSeconds": 15}
    first = look(spec, "me", None, 100.0)
    second = look({**spec, "renewTime": "b"}, "me", first.sighting, 114.0)
    assert not look({**spec, "renewTime": "b"}, "me", second.sighting, 120.0).may_take
    assert look({**spec, "renewTime": "b"}, "me", second.sighting, 130.0).may_take


def test_a_holder_whose_renewal_hangs_gives_up_before_anybody_else_may_begin() -> None:
    class Server:
        def __init__(self) -> None:
            self.lease: dict[str, Any] | None = None
            self.hangs, self.goes_on = threading.Event(), threading.Event()

        def get(self, *_: Any) -> dict[str, Any] | None:
            if self.lease is not None:
                self.hangs.set()
                self.goes_on.wait(120)
            return self.lease

        def create(self, kind: Any, manifest: dict[str, Any]) -> None:
            self.lease = manifest

        def replace(self, kind: Any, manifest: dict[str, Any]) -> None:
            self.lease = manifest

    server, now = Server(), [0.0]
    leadership = Leadership(server, "n", "lease", "me", clock=lambda: now[0])  # type: ignore[arg-type]
    assert leadership.turn()
    stop, lost = threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=loop, args=(stop, lost.set), daemon=True)
        for loop in (leadership.keep, leadership.guard)
    ]
    for thread in threads:
        thread.start()
    assert server.hangs.wait(120)
    assert not lost.is_set()
    now[0] = RENEW_SECONDS + 1
    assert lost.wait(120)
    stop.set()
    server.goes_on.set()
    for thread in threads:
        thread.join(120)
