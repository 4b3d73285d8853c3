"""Our `.properties` parser beside the real java.util.Properties, on random texts.

The JVM is the one that pyspark brings, called through its py4j.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from icestream.api.errors import ConfigError
from icestream.cluster.configs.properties import parse_properties
from tests.integration.jvm import java_gateway

SEED = 20261115
TEXTS = 1500
HALF_A_PAIR = "\N{REPLACEMENT CHARACTER}"
PIECES = (
    *("a", "b", "key", "1", "ü", "€", "😀", ".", "-", "_"),
    *("=", ":", " ", "  ", "\t", "\f", "#", "!"),
    *("\n", "\r", "\r\n", "\\\n", "\\\r\n", "\\\n   ", "\\\n#", "\n\n", "\n  ", "\\\n\n"),
    *(
        "\\",
        "\\\\",
        "\\\\\\",
        "\\=",
        "\\:",
        "\\ ",
        "\\#",
        "\\t",
        "\\n",
        "\\r",
        "\\f",
        "\\q",
        "\\u00e4",
        "\\u0041",
    ),
    *("\\uD83D\\uDE00", "\\uuu0041", "\\u12", "\\uZZZZ", "\\U0041", "\x00", "\x0b", "\x85", "\u2028"),
)


@pytest.fixture(scope="module")
def gateway() -> Iterator[JavaGateway]:
    with java_gateway() as opened:
        yield opened


def javas(gateway: JavaGateway, text: str) -> dict[str, str] | None:
    """The pairs that Java reads, or None if it refuses the text."""
    properties = gateway.jvm.java.util.Properties()
    try:
        properties.load(gateway.jvm.java.io.StringReader(text))
    except Exception as error:
        assert "IllegalArgumentException" in str(error), text
        return None
    return _tidy({key: properties.getProperty(key) for key in list(properties.stringPropertyNames())})


def ours(text: str) -> dict[str, str] | None:
    try:
        return _tidy(parse_properties(text))
    except ConfigError:
        return None


def _tidy(pairs: dict[str, str]) -> dict[str, str]:
    """Without the nameless key, which Java makes of some backslashes at the end of a file."""
    return {key: value for key, value in pairs.items() if key}


def test_random_texts_read_as_in_java(gateway: JavaGateway) -> None:
    rng = random.Random(SEED)
    different, refused = [], 0
    for _ in range(TEXTS):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 14)))
        expected, found = javas(gateway, text), ours(text)
        refused += expected is None
        # Half a surrogate pair cannot travel from the JVM to here.
        if found != expected and HALF_A_PAIR not in str(found):
            different.append((text, expected, found))
    assert different[:5] == []
    assert 0 < refused < TEXTS / 2, "the texts must be both good and bad"
