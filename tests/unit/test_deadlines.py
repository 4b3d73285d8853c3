import threading

import pytest

from icestream.deadlines import Overdue, within


def test_an_answer_in_time_is_returned_and_an_error_raised() -> None:
    assert within(60, lambda: 7, "quick") == 7
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0, "wrong")


def test_a_call_that_hangs_is_left_behind() -> None:
    go_on = threading.Event()
    with pytest.raises(Overdue):
        within(0.05, go_on.wait, "hangs")
    go_on.set()


def test_what_a_call_left_behind_held_is_given_up_when_it_ends() -> None:
    go_on, is_given_up = threading.Event(), threading.Event()
    with pytest.raises(Overdue):
        within(0.05, go_on.wait, "hangs", too_late=is_given_up.set)
    assert not is_given_up.is_set()
    go_on.set()
    assert is_given_up.wait(60)


def test_nothing_is_given_up_while_somebody_waits() -> None:
    given_up: list[str] = []
    within(60, lambda: 7, "quick", too_late=lambda: given_up.append("answer"))
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0, "wrong", too_late=lambda: given_up.append("error"))
    assert given_up == []
