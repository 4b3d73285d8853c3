"""Worker properties as text: of a `.properties` file, and of the variables that Confluent's images read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_PLAIN: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""Keys that a variable's name can tell: no capitals, never two signs in a row."""
_SIGNS: Final = {".": "_", "_": "__", "-": "___"}
_LONGEST: Final = 253


def properties_text(properties: Mapping[str, str]) -> str:
    """As java.util.Properties reads it back, whatever keys and values hold."""
    return "".join(f"{_key(key)}={escaped(value)}\n" for key, value in sorted(properties.items()))


def escaped(value: str) -> str:
    text = "".join(map(_sign, value))
    return f"\\{text}" if text.startswith(" ") else text


def variable_of(key: str) -> str | None:
    """`CONNECT_A_B__C___D` for `a.b_c-d`; None if no variable can name the key."""
    if not _PLAIN.fullmatch(key) or len(key) > _LONGEST:
        return None
    return "CONNECT_" + re.sub(r"[._-]", lambda sign: _SIGNS[sign.group()], key).upper()


def _key(key: str) -> str:
    return "".join(f"\\{sign}" if sign in " =:#!" else _sign(sign) for sign in key)


def _sign(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if " " <= sign <= "~":
        return sign
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
