"""ValueToKey, HeaderFrom, InsertHeader, DropHeaders, RegexRouter and Filter beside Kafka's own."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.api.errors import ConfigError
from icestream.api.java_regex import java_pattern
from icestream.records.schema import OPTIONAL_STRING, STRING, ConnectSchema, Kind, array, struct
from icestream.transforms.drop_headers import DropHeaders
from icestream.transforms.filter import Filter
from icestream.transforms.groups import Side
from icestream.transforms.header_from import HeaderFrom
from icestream.transforms.insert_header import InsertHeader, read_literal
from icestream.transforms.regex_router import RegexRouter
from icestream.transforms.value_to_key import ValueToKey
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated
from tests.smt_parity.java_side import JavaStep
from tests.smt_parity.neutral import Failed

SHAPE = Shape(names=("a", "b", "c.d", "ü"), depth=2)
REPLACE = st.sampled_from(["true", "false"])
VALUES = Json(
    [
        {"a": 1, "b": "x"},
        {"a": "1", "b": None},
        {"a": None},
        {"a": {"x": [1]}, "b": [1, "2"]},
        {},
        [1],
        "text",
        7,
        None,
    ]
)
SCHEMA = struct(
    ("a", ConnectSchema(Kind.INT32, optional=True, default=7)),
    ("b", OPTIONAL_STRING),
    ("l", array(STRING, optional=True)),
    name="s",
    version=1,
    doc="d",
    optional=True,
)
ROWS = Of(SCHEMA, [{"a": 1, "b": "x", "l": []}, {"a": None, "b": None, "l": None}, None])


@pytest.mark.parametrize("replace", ["true", "false"])
@pytest.mark.parametrize("fields", ["a", "a,b", "b,a", "gone", "a,gone", "l,b"])
def test_keys_from_values(parity: Parity, fields: str, replace: str) -> None:
    smt = Smt(ValueToKey, {"fields": fields, "replace.null.with.default": replace}, None)
    parity.check([smt], Given(VALUES))
    parity.check([smt], Given(ROWS, key=Json([1, 2, 3])))
    parity.check([smt], Given(Of(OPTIONAL_STRING, ["x", None])))


@generated(examples=100)
@given(
    fields=st.lists(st.sampled_from(SHAPE.names), min_size=1, max_size=3, unique=True),
    replace=REPLACE,
    records=givens(SHAPE),
)
def test_keys_from_anything(parity: Parity, fields: list[str], replace: str, records: Given) -> None:
    config = {"fields": ",".join(fields), "replace.null.with.default": replace}
    parity.check([Smt(ValueToKey, config, None)], records)


@pytest.mark.parametrize("replace", ["true", "false"])
@pytest.mark.parametrize("operation", ["move", "copy"])
@pytest.mark.parametrize(
    ("fields", "headers"), [("a", "h"), ("a,b", "h,i"), ("b,l", "h,h"), ("gone", "h"), ("a,a", "h,i")]
)
def test_headers_from_fields(parity: Parity, fields: str, headers: str, operation: str, replace: str) -> None:
    config = {
        "fields": fields,
        "headers": headers,
        "operation": operation,
        "replace.null.with.default": replace,
    }
    before = [("h", Of(STRING, ["old"] * 9))]
    parity.check([Smt(HeaderFrom, config)], Given(VALUES, headers=before))
    parity.check([Smt(HeaderFrom, config)], Given(ROWS))
    parity.check([Smt(HeaderFrom, config, Side.KEY)], Given(Json([1, 2, 3]), key=ROWS))


@pytest.mark.parametrize(
    "config",
    [
        {"fields": "a,b", "headers": "h", "operation": "move"},
        {"fields": "a,b,l", "headers": "h,i,j", "operation": "move"},
    ],
    ids=str,
)
def test_headers_for_each_field(parity: Parity, config: dict[str, str]) -> None:
    parity.check([Smt(HeaderFrom, config)], Given(ROWS))


@generated(examples=100)
@given(
    fields=st.lists(st.sampled_from(SHAPE.names), min_size=1, max_size=3),
    operation=st.sampled_from(["move", "copy"]),
    replace=REPLACE,
    side=st.sampled_from(Side),
    records=givens(SHAPE, headers=True),
)
def test_headers_from_anything(
    parity: Parity, fields: list[str], operation: str, replace: str, side: Side, records: Given
) -> None:
    config = {
        "fields": ",".join(fields),
        "headers": ",".join("hij"[: len(fields)]),
        "operation": operation,
        "replace.null.with.default": replace,
    }
    parity.check([Smt(HeaderFrom, config, side)], records)


LITERALS = [
    *("null", "true", " false ", "true}", "TRUE", "nul", "", "  ", "\t", "abc", " abc ", "a:b", "\\"),
    *("0", "12", "-128", "128", "300", "-32769", "70000", "2147483648", "5000000000", "+5", "-", "+", "--5"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "12345678901234567890123"),
    *("1.5", "1.0", "-0.0", "0.1", "1e5", "1E+2", "1.5e300", "1e40", "-1e39", "1e-50", "1.", ".5", "-.5"),
    *("1f", "0x10", "1_000", "12 34", "5 ", " 5", "Infinity", "-NaN"),
    *("2019-08-23", "2019-8-23x", "2019-99-99", "12345-1-02"),
    *("14:34:54.346Z", "00:00:00.000Z", "23:59:59.999Z"),
    *("2019-08-23T14:34:54.346Z", "2019-08-23T14:34:54.346X", "2019-08-23T14\\:34\\:54.346Z"),
    *('"quoted"', '"', "ü", "😀", "\\[1]", "12345678901234567890", "true,false", "null,null"),
]


@pytest.mark.parametrize("literal", LITERALS)
def test_literals(parity: Parity, literal: str) -> None:
    smt = Smt(InsertHeader, {"header": "h", "value.literal": literal}, None)
    parity.check([smt], Given(Json([1, None]), headers=[("h", Of(STRING, ["x", "y"]))]))


PIECES = ["1", "300", "1.5", "x", '"', "]", "}", ",", ":", " ", "\\", "null", "true", "-", "2019-08-23"]


@generated(examples=400)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).filter(lambda some: some != [" "]))
def test_literals_of_all_pieces(parity: Parity, pieces: list[str]) -> None:
    text = "".join(pieces)
    with suppress(ConfigError):
        read_literal(text)
        _check_literal(parity, text)


def _check_literal(parity: Parity, text: str) -> None:
    smt = Smt(InsertHeader, {"header": "h", "value.literal": text}, None)
    parity.check([smt], Given(Json([1])))


@pytest.mark.parametrize("names", ["h", "i", "h,i", "gone", "H"])
def test_drops_headers(parity: Parity, names: str) -> None:
    headers = [("h", Of(STRING, ["x"])), ("i", Of(OPTIONAL_STRING, [None])), ("h", Json([1]))]
    parity.check([Smt(DropHeaders, {"headers": names}, None)], Given(Json([{}]), headers=headers))


@generated(examples=30)
@given(names=st.sampled_from(["h", "i", "i,h"]), records=givens(headers=True))
def test_drops_any_headers(parity: Parity, names: str, records: Given) -> None:
    parity.check([Smt(DropHeaders, {"headers": names}, None)], records)


@generated(examples=10)
@given(records=givens(headers=True))
def test_drops_anything(parity: Parity, records: Given) -> None:
    parity.check([Smt(Filter, {}, None)], records)


TOPICS = ["orders", "orders-v12", "a.b.c", "ab", "A_b-1", "x", "..", "eu.orders.v2", "aaa", "1a2b"]
PATTERNS = [
    *("(.*)", "orders", "(.*)-v(\\d+)", "([a-z]+)(-v(\\d+))?", "a|ab", "a?", "(?i)AB", "a(?i)b|x", "(?i:a)b"),
    *("[a-z&&[^aeiou]]+", "[^a-z]+", "[\\w.-]+", "[a-c[x-z]]+", "[a-z&&b]+.*", "[]a]+", "[^]]+", "[a-]+"),
    *(
        "\\Qa.b\\E.*",
        "a\\.b\\.c",
        "\\p{Alpha}+",
        "\\p{Lower}\\p{Alnum}*",
        "\\P{Upper}+",
        "\\p{Lu}.*",
        "\\pL+",
    ),
    *(
        "(?<first>[a-z]+)\\.(?<rest>.*)",
        "a{2,3}",
        "a{3}",
        ".{2}",
    ),
    *(
        "(?=o).*",
        "(?!o).*",
        "^orders$",
        "\\Aorders\\z",
        "orders\\Z",
        "\\borders\\b.*",
    ),
    *(
        "(\\d)(\\w)(\\d)(\\w)",
        "x\\x2d",
        "\\x61\\u0062",
        "[\\x61-\\x7a]+",
        "\\S+",
        "\\D+",
        "(?s).+",
        "(?:)",
    ),
    *("()x", "(x|y)(z)?", "(?-i)x", "\\.\\.", "[.]+", "(a)(b)?", "[a-z]*?"),
]
REPLACEMENTS = [
    *("new", "$0", "$1", "$1_$2", "${first}", "${rest}.${first}", "\\$1", "\\\\", "$1$1", "$10", "x$11y", ""),
    *("$", "${", "${}", "${1a}", "${gone}", "${first", "$x", "\\", "$3", "$9", "a b", "é"),
]


@pytest.mark.parametrize("regex", PATTERNS)
def test_routes(parity: Parity, regex: str) -> None:
    for replacement in ("<$0>", "$1") if java_pattern(regex).groups else ("<$0>",):
        smt = Smt(RegexRouter, {"regex": regex, "replacement": replacement}, None)
        for topic in TOPICS:
            parity.check([smt], Given(Json([1]), topic=topic))


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_replaces(parity: Parity, replacement: str) -> None:
    for regex in ("(?<first>[a-z]+)(\\.(?<rest>.*))?", "(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "orders|a"):
        smt = Smt(RegexRouter, {"regex": regex, "replacement": replacement}, None)
        for topic in ("orders", "orders-v12", "a.b.c", "orders-v1"):
            if java_pattern(regex).fullmatch(topic):
                _check_replacement(parity, smt, Given(Json([1]), topic=topic))


def _check_replacement(parity: Parity, smt: Smt, given: Given) -> None:
    """What Java fails each record for is refused beforehand."""
    try:
        RegexRouter.configured(smt.config, Side.VALUE)
    except ConfigError:
        step = JavaStep(parity.java.configured(smt.java_class, smt.config))
        parity.compare(
            "RegexRouter", [Failed("", None)], parity.java.transformed([step], given), reasons=False
        )
    else:
        parity.check([smt], given)
