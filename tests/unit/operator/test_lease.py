"""Whose the lease is, by clocks that do not agree."""

from __future__ import annotations

from icestream.operator.lease import look


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
