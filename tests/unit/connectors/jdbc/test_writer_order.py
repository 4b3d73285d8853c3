"""Rows with different columns: put together as far as the order of each key allows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestream.connectors.jdbc.sink.writer import _rounds


def rounds(keys: list[str], which: list[int]) -> list[int]:
    found: list[int] = _rounds(pa.table({"k": keys}), np.array(which)).tolist()
    return found


def test_rows_of_different_keys_need_one_round() -> None:
    assert rounds(["a", "b", "c", "d"], [0, 1, 0, 1]) == [0, 0, 0, 0]


def test_a_key_that_goes_back_to_an_earlier_set_of_columns_needs_another_round() -> None:
    assert rounds(["a", "b", "a", "a", "b"], [0, 1, 1, 0, 0]) == [0, 0, 0, 1, 1]
    assert rounds(["a", "a", "a", "b", "a"], [1, 0, 1, 1, 0]) == [0, 1, 1, 0, 2]


def test_letters_and_blanks_that_a_database_may_not_tell_apart_are_one_key() -> None:
    assert rounds(["a", "A ", "b"], [1, 0, 0]) == [0, 1, 0]


def test_without_keys_order_does_not_matter() -> None:
    assert _rounds(pa.table({}), np.array([0, 1, 0])).tolist() == [0, 0, 0]
