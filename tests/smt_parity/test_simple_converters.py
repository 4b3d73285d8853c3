"""Converters of strings, bytes, booleans and numbers beside the real ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.converters.catalog import converter_from
from icestream.records.schema import ConnectSchema, Kind
from tests.smt_parity.generators import data, texts
from tests.smt_parity.given import Data, Json, Of
from tests.smt_parity.harness import Parity, generated
from tests.smt_parity.test_json_converter import one_type_each

STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
PACKAGE: Final = "org.apache.kafka.connect.converters."
SINGLE: Final = [
    f"{PACKAGE}{name}Converter"
    for name in ("ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double")
]
ENCODINGS: Final = ["UTF-8", "ISO-8859-1", "UTF-16", "UTF-16LE", "windows-1252", "US-ASCII"]
BYTES: Final = [
    None,
    b"",
    b"\0",
    b"\1",
    b"\2",
    b"ab",
    b"abc",
    b"abcd",
    b"\xff" * 4,
    b"12345678",
    b"\x7f\xf8" + b"\0" * 6,
]


def told(one: Any) -> Any:
    """Text whose fractions are read: older JDKs write more digits than it takes to tell them apart."""
    if not isinstance(one, bytes):
        return one
    return re.sub(rb"-?[0-9]+[.][0-9]+(E-?[0-9]+)?", lambda found: repr(float(found[0])).encode(), one)


def words(one: Any) -> Any:
    """In any order."""
    text = told(one)
    return sorted(re.split(rb"[{}, ]+", text)) if isinstance(text, bytes) else text


def check_read(parity: Parity, name: str, config: dict[str, str], values: list[bytes | None]) -> None:
    whole = {"value.converter": name, **{f"value.converter.{key}": value for key, value in config.items()}}
    subject = f"{name.rpartition('.')[2]} reads"
    parity.check_to_connect(subject, converter_from(whole, "value"), name, config, values, reasons=True)


def check_written(
    parity: Parity, name: str, config: dict[str, str], values: Data, read: Callable[[bytes], Any] = bytes
) -> None:
    whole = {"value.converter": name, **{f"value.converter.{key}": value for key, value in config.items()}}
    subject = f"{name.rpartition('.')[2]} writes"
    for part in one_type_each(values):
        parity.check_from_connect(subject, converter_from(whole, "value"), name, config, part, read=read)


@pytest.mark.parametrize("name", [*SINGLE, STRING])
def test_bytes_are_read_alike(parity: Parity, name: str) -> None:
    check_read(parity, name, {}, BYTES)
    check_read(parity, name, {}, [None])


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)])
def test_values_of_every_kind_are_written_alike(parity: Parity, name: str, kind: Kind) -> None:
    some = {Kind.STRING: "1", Kind.BYTES: b"1", Kind.BOOLEAN: True, Kind.FLOAT32: 1.5, Kind.FLOAT64: -1e300}
    value = some.get(kind, 100)
    check_written(parity, name, {}, Of(ConnectSchema(kind, optional=True), [value, None]))
    check_written(parity, name, {}, Of(ConnectSchema(kind, optional=True), [None]))


@generated(examples=15)
@given(values=data())
@pytest.mark.parametrize("name", SINGLE)
def test_any_value_is_written_alike(parity: Parity, name: str, values: Data) -> None:
    check_written(parity, name, {}, values)


@generated(examples=25)
@given(values=st.lists(st.binary(max_size=8), min_size=8, max_size=12))
@pytest.mark.parametrize("name", [*SINGLE, STRING])
def test_any_bytes_are_read_alike(parity: Parity, name: str, values: list[bytes]) -> None:
    check_read(parity, name, {}, list(values))


@generated(examples=10)
@given(values=st.lists(texts(), min_size=8, max_size=12))
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_strings_are_written_and_read_alike(parity: Parity, encoding: str, values: list[str]) -> None:
    config = {"converter.encoding": encoding}
    check_written(parity, STRING, config, Json(values))
    codec = {"US-ASCII": "ascii"}.get(encoding, encoding)
    check_read(parity, STRING, config, [value.encode(codec, "replace") for value in values])


@generated(examples=40)
@given(values=data())
def test_values_are_written_as_strings_alike(parity: Parity, values: Data) -> None:
    # Java prints where bytes lie in memory, floats with digits of their own, maps in an order of its own.
    if not {"BYTES", "FLOAT32", "MAP"} & set(re.findall("[A-Z0-9]{3,}", repr(values))):
        check_written(parity, STRING, {}, values, words)
