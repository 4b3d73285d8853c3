"""Headers written beside the real header converters."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given

from icestream.converters.catalog import converter_from
from tests.smt_parity.generators import data
from tests.smt_parity.given import Data, Json, our_value
from tests.smt_parity.harness import Parity, generated, written
from tests.smt_parity.test_json_converter import meaning, one_type_each
from tests.smt_parity.test_simple_converters import told

SIMPLE: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


def check(parity: Parity, name: str, values: Data) -> None:
    theirs = parity.java.from_connect_header(parity.java.header_converter(name, {}), "h", values)
    ours = written(
        converter_from({"header.converter": name}, "header"), our_value(values), len(values.values)
    )
    subject = f"{name.rpartition('.')[2]} of headers writes"
    parity.compare(
        subject, [*map(_read(name), ours)], [*map(_read(name), theirs)], given=values, reasons=False
    )


def _read(name: str) -> Any:
    if name == SIMPLE:
        return told
    return lambda one: meaning(one) if isinstance(one, bytes) else one


SCALARS: Final = [["a", 'q"\\', "ü", ""], [1, -(2**63)], [1.5, 1e21], [True, False], [[1, "a", None], []]]


@pytest.mark.parametrize("name", [SIMPLE, JSON])
@pytest.mark.parametrize("values", SCALARS)
def test_values_are_written_alike(parity: Parity, name: str, values: list[Any]) -> None:
    check(parity, name, Json(values))


@generated(examples=25)
@given(values=data())
@pytest.mark.parametrize("name", [SIMPLE])
def test_any_value_is_written_alike(parity: Parity, name: str, values: Data) -> None:
    # Older JDKs write more digits of floats than needed, and walk maps in another order.
    if "FLOAT32" in repr(values) or "MAP" in repr(values):
        return
    for part in one_type_each(values):
        check(parity, name, part)
