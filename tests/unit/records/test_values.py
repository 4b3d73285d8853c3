"""Schemaless values: undecoded text by Java types, and edits on top of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.records.column import Column
from icestream.records.json_source import ABSENT, JsonSource, parsed
from icestream.records.plain import plain
from icestream.records.values import Fields, Listing, Part, Text, object_fields, typed

TEXTS = [
    b'{"a":1,"b":{"c":"x"},"n":null}',
    b'{"a":2.5,"b":[1],"n":3}',
    b'{"a":"z","b":{"c":4}}',
    b'{"a":99999999999999999999,"b":{}}',
    b'{"a":1e400}',
]


def _fields(*texts: bytes) -> Fields:
    return object_fields(JsonSource(texts or TEXTS))


def _shown(parts: list[Part], length: int) -> dict[str, tuple[list[int], list[Any]]]:
    return {
        str(part.value.values.type) if isinstance(part.value, Column) else type(part.value).__name__: (
            list(range(length)) if part.rows is None else part.rows.tolist(),
            plain(part.value, len(part.value)),
        )
        for part in parts
    }


def test_a_field_parts_by_java_type_and_whole_numbers_keep_their_low_64_bits() -> None:
    assert _shown(typed(_fields().get("a"), 5), 5) == {
        "string": ([2], ["z"]),
        "int64": ([0, 3], [1, 99999999999999999999 - 5 * 2**64]),
        "double": ([1, 4], [2.5, float("inf")]),
    }


def test_objects_and_lists_stay_text() -> None:
    found = _shown(typed(_fields().get("b"), 5), 5)
    assert found == {
        "null": ([4], [ABSENT]),
        "Fields": ([0, 2, 3], [{"c": "x"}, {"c": 4}, {}]),
        "Listing": ([1], [[1]]),
    }


def test_null_is_not_missing() -> None:
    (part,) = typed(_fields().get("n"), 5)
    assert isinstance(part.value, Column)
    assert part.rows is None
    assert part.value.values.to_pylist() == [None, 3, None, None, None]
    assert part.value.absent is not None
    assert part.value.absent.tolist() == [False, False, True, True, True]


def test_a_key_that_nobody_has_is_a_column_of_nothing() -> None:
    (part,) = typed(_fields().get("zz"), 5)
    assert plain(part.value, 5) == [ABSENT] * 5
    (gone,) = typed(None, 2)
    assert plain(gone.value, 2) == [ABSENT] * 2


def test_a_path_into_what_is_no_object_ends_early() -> None:
    value = _fields(b'{"b":{"c":1}}', b'{"b":[2]}', b'{"b":7}', b'{"b":null}', b"{}").rest
    assert value is not None
    assert value.child("b").child("c").objects() == [1, ABSENT, ABSENT, ABSENT, ABSENT]


def test_later_chunks_decode_what_earlier_ones_were_asked_for() -> None:
    first = JsonSource([b'{"a":1,"b":2}'])
    first.objects(("a",))
    first.objects(("b", "c"))
    second = JsonSource([b'{"a":3,"b":{"c":4}}'], first.learned)
    assert second.objects(("a",)) == [3]
    assert second.objects(("b", "c")) == [4]
    assert second.objects(("b",)) == [{"c": 4}]


def test_edits_lie_on_top_of_the_text() -> None:
    fields = _fields(b'{"a":1,"b":2}', b'{"a":3}')
    edited = fields.put({"b": None, "c": Column(pa.array(["x", "y"])), "d": fields.get("a")})
    assert plain(edited, 2) == [{"a": 1, "c": "x", "d": 1}, {"a": 3, "c": "y", "d": 3}]
    assert plain(edited.take(np.array([1])), 1) == [{"a": 3, "c": "y", "d": 3}]
    expanded = edited.expanded(most=3)
    assert expanded is not None
    assert expanded.rest is None
    assert plain(expanded, 2) == plain(edited, 2)
    assert edited.expanded(most=2) is None


def test_rows_of_a_listing_can_be_taken() -> None:
    listing = next(part.value for part in typed(_fields().get("b"), 5) if isinstance(part.value, Listing))
    assert plain(listing.take(np.array([0])), 1) == [[1]]


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b'{"a":Infinity}', b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_refused_with_a_reason(text: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(text)


def test_texts_are_equal_if_they_are_the_same_rows_of_the_same_path() -> None:
    source = JsonSource(TEXTS)
    text = Text(source, ("a",), np.array([0, 1]))
    assert text == Text(source, ("a",), np.array([0, 1]))
    assert Text(source, ("a",)) == Text(source, ("a",))
    for other in (
        Text(source, ("a",)),
        Text(source, ("b",), np.array([0, 1])),
        Text(source, ("a",), np.array([0, 2])),
        Text(JsonSource(TEXTS), ("a",), np.array([0, 1])),
        None,
    ):
        assert text != other
