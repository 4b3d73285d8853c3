"""One limit of levels, the same on every Python, wherever JSON comes in."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.api.nesting import (
    MOST_LEVELS,
    NestedTooDeeply,
    has_more_levels,
    is_too_deep,
    read_json,
    too_deep_ones,
)
from icestream.converters.json_converter import JsonConverter
from icestream.image_archives.http_answers import error_codes
from icestream.jsontext.encode import object_text
from icestream.jsontext.one_value import exact_one, first_value, plain_text
from icestream.records.java_text import java_text
from icestream.records.json_source import parsed
from icestream.records.records import Converted
from icestream.rest.errors import MalformedBody
from icestream.rest.exchange import _parsed


def _lists(levels: int, inside: bytes = b"1") -> bytes:
    return b"[" * levels + inside + b"]" * levels


def _objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def _mixed(levels: int) -> bytes:
    return b'[{"a\\"[":' * (levels // 2) + _lists(levels % 2) + b',"]":"}"}]' * (levels // 2)


def _converted(text: bytes, **settings: str) -> None:
    converter = JsonConverter.configured({"schemas.enable": "false", **settings}, is_key=False)
    found: Converted = converter.to_connect("t", [b"{}", text])
    if 1 in found.failed:
        raise ValueError(found.failed[1].reason)


def _in_envelope(text: bytes) -> None:
    _converted(b'{"schema":null,"payload":%b}' % text, **{"schemas.enable": "true"})


READERS: dict[str, Callable[[bytes], object]] = {
    "document": read_json,
    "value": parsed,
    "one value": exact_one,
    "lenient": plain_text,
    "string": lambda text: first_value(text.decode()),
    "converter": _converted,
    "converter of envelopes": _in_envelope,
    "REST": _parsed,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", [_lists, _mixed])
def test_the_limit_is_the_same_everywhere(reader: str, text: Callable[[int], bytes]) -> None:
    most = MOST_LEVELS - 1 if reader == "converter of envelopes" else MOST_LEVELS
    READERS[reader](text(most))
    for more in (1, 2, 90, 500, 4_000, 100_000):
        with pytest.raises((ValueError, MalformedBody), match=r"nested|nesting|deep"):
            READERS[reader](text(most + more))


def test_text_without_an_end_is_too_deep_before_it_is_broken() -> None:
    for text in (b"[" * 100_000, b'{"a":' * 100_000, b'{"a":"' + b"\\" * 10 + b'","b":' + b"[" * 1_000):
        with pytest.raises(NestedTooDeeply, match="deeper than 910 levels"):
            read_json(text)


def test_what_came_in_can_be_written() -> None:
    value = read_json(_objects(MOST_LEVELS))
    assert object_text(value) == _objects(MOST_LEVELS).decode()
    assert java_text(value) == "{a=" * MOST_LEVELS + "1" + "}" * MOST_LEVELS
    with pytest.raises(NestedTooDeeply):
        object_text({"a": value})
    with pytest.raises(NestedTooDeeply):
        object_text([read_json(_lists(MOST_LEVELS, b""))])


def test_an_answer_of_a_server_is_no_exception() -> None:
    assert error_codes(b'{"errors":%b}' % _lists(100_000)) == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_other_encodings_hide_no_levels(encoding: str) -> None:
    # Each of these characters has a quotation mark's byte in UTF-16.
    text = f'{{"∢":{"[" * MOST_LEVELS}{"]" * MOST_LEVELS}}}'
    assert read_json(text.replace("[[", "[").replace("]]", "]").encode(encoding))
    with pytest.raises(NestedTooDeeply):
        read_json(text.encode(encoding))


VALUES = st.recursive(
    st.none() | st.text(alphabet='a"\\[]{}é\ud800', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a"\\[{', max_size=3), inner)
    ),
    max_leaves=20,
)


def _levels(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + max(map(_levels, value.values() if isinstance(value, dict) else value), default=0)
    return 0


@given(VALUES)
def test_levels_are_counted_outside_of_strings(value: Any) -> None:
    text = json.dumps(value).encode()
    levels = _levels(value)
    assert not is_too_deep(text, levels)
    assert not levels or is_too_deep(text, levels - 1)
    assert read_json(text, levels) == value


def test_positions_of_those_that_are_too_deep() -> None:
    assert too_deep_ones([None, b"", _lists(911), _lists(910), _objects(2_000)]) == [2, 4]


def test_things_that_are_in_many_places_are_looked_at_once_a_level() -> None:
    looked = []

    def inside(thing: tuple[Any, ...]) -> tuple[Any, ...]:
        looked.append(thing)
        return thing

    thing: tuple[Any, ...] = ()
    for _ in range(40):
        thing = (thing, thing)
    assert not has_more_levels(thing, 41, inside)
    assert len(looked) == 41
    assert has_more_levels(thing, 40, inside)
