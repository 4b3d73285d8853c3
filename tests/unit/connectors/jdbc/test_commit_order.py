"""Which transactions hold a window up, and for how long."""

from __future__ import annotations

from icestream.connectors.jdbc.source.commit_order import CommitWait, TransactionAges
from icestream.connectors.jdbc.source.databases.base import OpenTransactions


def opened(writing: str = "", others: str = "") -> OpenTransactions:
    return OpenTransactions(frozenset(writing.split()), frozenset(others.split()))


def test_those_that_write_are_waited_for_without_limit() -> None:
    ages = TransactionAges()
    wait = CommitWait.begin(lambda: opened("a"), ages, 10.0, 0.0)
    assert wait.left(lambda: opened("a"), ages, 1000.0) == {"a"}
    assert wait.left(lambda: opened("b"), ages, 1001.0) == set()


def test_others_are_waited_for_up_to_a_limit_and_longer_once_they_write() -> None:
    ages = TransactionAges()
    wait = CommitWait.begin(lambda: opened("", "a b"), ages, 10.0, 0.0)
    assert wait.left(lambda: opened("", "a b"), ages, 9.0) == {"a", "b"}
    assert wait.left(lambda: opened("b", "a"), ages, 11.0) == {"b"}
    assert wait.left(lambda: opened("", "a"), ages, 12.0) == set()


def test_one_that_idles_holds_the_next_window_up_no_more() -> None:
    ages = TransactionAges()
    CommitWait.begin(lambda: opened("", "a"), ages, 10.0, 0.0)
    assert CommitWait.begin(lambda: opened("", "a"), ages, 10.0, 11.0).waited_for == set()
    # A name that is given again is another transaction.
    ages.note(frozenset(), 12.0)
    assert CommitWait.begin(lambda: opened("", "a"), ages, 10.0, 13.0).waited_for == {"a"}


def test_what_cannot_be_seen_is_waited_for_as_long() -> None:
    ages = TransactionAges()
    wait = CommitWait.begin(lambda: None, ages, 10.0, 0.0)
    assert wait.left(lambda: None, ages, 9.0)
    assert not wait.left(lambda: None, ages, 10.0)
    assert not CommitWait.begin(lambda: None, ages, 0.0, 0.0).waited_for


def test_one_that_was_seen_is_not_over_because_nobody_tells_of_it_now() -> None:
    ages = TransactionAges()
    wait = CommitWait.begin(lambda: opened("a"), ages, 10.0, 0.0)
    assert wait.left(lambda: None, ages, 1000.0) == {"a"}
    assert wait.left(opened, ages, 1001.0) == set()
