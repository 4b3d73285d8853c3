"""One JSON value that the bulk readers refuse, read as Jackson reads it for Kafka Connect; and the words that
Java's JsonConverter has for what it refuses."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from icestream.api.batch import DATA_EXCEPTION
from icestream.api.nesting import NestedTooDeeply, is_too_deep, read_json
from icestream.records.json_source import ABSENT
from icestream.records.records import Failure

BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
TOO_DEEP: Final = BROKEN + "Document nesting depth exceeds the maximum allowed"
SCHEMA_BUILDER_EXCEPTION: Final = "org.apache.kafka.connect.errors.SchemaBuilderException"
MISSING: Final = ABSENT
"""There is no value in the text."""

_LEADING_ZEROS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?)0+(?=\d)')
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_WHITE: Final = " \t\r\n"


class NotConvertible(ValueError):
    """A value or schema that Java's converter refuses, with the words and the class of its exception."""

    def __init__(self, reason: str, exception: str = DATA_EXCEPTION) -> None:
        super().__init__(reason)
        self.exception = exception


def failure_of(error: ValueError) -> Failure:
    if isinstance(error, NotConvertible):
        return Failure(str(error), error.exception)
    return Failure(str(error))


def is_broken(why: Failure) -> bool:
    """Whether the text itself was refused, not what it means; in another spelling it may be taken."""
    if why.reason == TOO_DEEP:
        return False
    return why.reason.startswith(BROKEN) or why.reason == NO_ENVELOPE


def plain_text(value: bytes) -> bytes:
    """The first JSON value of the text, spelled so that strict readers take it; empty if there is none.

    Jackson takes leading zeros, lone surrogates and anything after the first value. Raises ValueError.
    """
    if is_too_deep(value):
        raise ValueError(TOO_DEEP)
    text = _first_value(_decoded(value))
    if text and _may_have_surrogates(text):
        found = json.loads(text)
        respelled = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        if _SURROGATES.search(respelled):
            text = respelled
    return text.encode(errors="replace")


def exact(value: bytes) -> Any:
    """The value with its numbers as ints and Decimals, as Jackson keeps them for Kafka Connect; MISSING if
    the text is empty. Raises ValueError."""
    text = plain_text(value)
    return json.loads(text, parse_float=Decimal) if text else MISSING


def exact_one(value: bytes) -> Any:
    """As `exact`, of a text that must be one value and nothing else."""
    try:
        found = read_json(value, parse_float=Decimal, parse_constant=_refuse)
        return exact(value) if b"\\ud" in value.lower() else found
    except NestedTooDeeply:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        raise ValueError(f"{BROKEN}{error}") from None


def first_value(text: str) -> Any:
    """The first value of a text, as Jackson reads strings; None, too, if there is none. Raises ValueError."""
    if is_too_deep(text.encode(errors="surrogatepass")):
        raise ValueError(TOO_DEEP)
    try:
        return _read_object(text)
    except ValueError:  # other values, text behind them, huge numbers, half surrogates
        return _read_leniently(text.lstrip(_WHITE))


def _read_leniently(text: str) -> Any:
    if not text:
        return None
    value, end = _READER.raw_decode(text)
    if end < len(text) and _goes_on(value, text[end]):
        raise ValueError(f"{text[end]!r} is no end of a value")
    return value


def _goes_on(value: Any, after: str) -> bool:
    """Whether the sign after a value at the top would be part of it."""
    if isinstance(value, bool) or value is None:
        return after.isalnum() or after in "_$"
    return isinstance(value, int | float) and after not in _WHITE


def encodable(text: str) -> str:
    """Half a surrogate pair is what Java writes for it in UTF-8: a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _decoded(value: bytes) -> str:
    try:
        return value.decode().lstrip(_WHITE)
    except UnicodeDecodeError as error:
        raise ValueError(f"{BROKEN}the value is not UTF-8: {error}") from None


def _first_value(text: str) -> str:
    if not text:
        return ""
    try:
        end = _READER.raw_decode(text)[1]
        return _first_value(_without_zeros(text)) if _are_zeros(text, end) else text[:end]
    except json.JSONDecodeError as error:
        if _are_zeros(text, error.pos):
            return _first_value(_without_zeros(text))
        raise ValueError(f"{BROKEN}{error}") from None
    except ValueError as error:
        raise ValueError(f"{BROKEN}{error}") from None


def _are_zeros(text: str, stopped: int) -> bool:
    """Whether the reader stopped between a zero and the number that it leads."""
    return text[stopped - 1 : stopped] == "0" and text[stopped : stopped + 1].isdigit()


def _without_zeros(text: str) -> str:
    return _LEADING_ZEROS.sub(lambda found: found[0] if found[1] is None else found[1], text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_READER: Final = json.JSONDecoder(parse_constant=_refuse)
_read_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


def _may_have_surrogates(text: str) -> bool:
    return "\\ud" in text or "\\uD" in text
