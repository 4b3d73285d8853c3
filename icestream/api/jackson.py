"""JSON with the bytes that Kafka Connect's own JSON library writes, for keys that both must find again."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_ESCAPES: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)|[\U00010000-\U0010ffff]")


def jackson_bytes(data: Any) -> bytes:
    """No blanks; characters beyond ASCII as they are, unless Java keeps them as two; capital hex digits."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return _ESCAPES.sub(_as_jackson, text).encode()


def _as_jackson(found: re.Match[str]) -> str:
    if found[1] is not None:
        return f"\\u{found[1].upper()}"
    if ord(found[0][0]) < 0x10000:
        return found[0]
    units = found[0].encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"
