"""The order of Java's HashMap."""

from __future__ import annotations

from icestream.transforms.java_order import java_order


def test_names_come_in_the_order_of_their_buckets() -> None:
    assert java_order(["b", "a", "ü", "c.d"]) == ["a", "b", "c.d", "ü"]
    assert java_order(["q", "a", "q"]) == ["q", "a"]


def test_more_names_make_more_buckets() -> None:
    letters = [chr(code) for code in range(ord("a"), ord("a") + 13)]
    assert java_order(["q", *letters])[:2] == ["a", "b"]
    assert java_order(["q", "a"]) == ["q", "a"]
