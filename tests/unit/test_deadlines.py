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
