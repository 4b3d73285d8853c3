"""The text of a Java `.properties` file: plain ASCII, which Java reads alike whatever its character set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def properties_text(properties: Mapping[str, object]) -> str:
    """As java.util.Properties reads it back, whatever keys and values hold."""
    return "".join(f"{_key(key)}={escaped(str(value))}\n" for key, value in properties.items())


def escaped(value: str) -> str:
    text = "".join(map(_sign, value))
    return f"\\{text}" if text.startswith(" ") else text


def _key(key: str) -> str:
    return "".join(f"\\{sign}" if sign in " =:#!" else _sign(sign) for sign in key)


def _sign(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if " " <= sign <= "~":
        return sign
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
