"""How deeply values may be nested: one limit, the same on every Python. It is checked on the text, without
recursion, before anything is decoded: each interpreter has another limit of its own, and some have none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

MOST_LEVELS: Final = 910
"""Objects and lists in each other. Jackson takes 1,000. Python 3.11 counts the levels of its decoders
together with the calls around them, 1,000 in all; 3.12 takes 1,500 levels, 3.13 10,000, 3.14 what the stack
holds."""
_ROOM: Final = 2_000
"""Calls: for the functions that call themselves once or twice a level."""
sys.setrecursionlimit(max(sys.getrecursionlimit(), _ROOM))

_ALL_ELSE: Final = bytes(set(range(256)) - set(b'{}[]"'))
_OPENING_BIT: Final = 2
"""Which only opening brackets and braces have of the four."""


class NestedTooDeeply(ValueError):
    def __init__(self, most: int) -> None:
        super().__init__(f"it is nested deeper than {most} levels")


def is_too_deep(text: bytes, most: int = MOST_LEVELS) -> bool:
    """Whether JSON in UTF-8 has more levels; of text that is broken, whether a decoder might see more."""
    if len(text) <= most or text.count(b"{") + text.count(b"[") <= most:
        return False
    import numpy as np

    text = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _ALL_ELSE)
    outside_of_strings = b"".join(text.replace(b'""', b"").split(b'"')[::2])
    is_opening = (np.frombuffer(outside_of_strings, np.uint8) & _OPENING_BIT).astype(np.bool_)
    return bool(np.cumsum(np.where(is_opening, 1, -1)).max(initial=0) > most)


def too_deep_ones(texts: Sequence[bytes | None]) -> list[int]:
    """The positions of those that are nested too deeply."""
    return [at for at, text in enumerate(texts) if text and len(text) > MOST_LEVELS and is_too_deep(text)]


def read_json(text: str | bytes | bytearray, most: int = MOST_LEVELS, **hooks: Any) -> Any:
    """What `json.loads` makes of a text; raises NestedTooDeeply, or another ValueError."""
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if is_too_deep(text.encode(errors="surrogatepass"), most):
        raise NestedTooDeeply(most)
    return json.loads(text, **hooks)


def has_more_levels(root: Any, most: int, inside: Callable[[Any], Iterable[Any]]) -> bool:
    """Whether things that hold others, as schemas do, are deeper than that; `inside` is what one holds. A
    thing that is in several places is looked at once a level."""
    level = [root]
    for _ in range(most):
        level = list({id(one): one for outer in level for one in inside(outer)}.values())
        if not level:
            return False
    return True
