"""Field paths of `field.syntax.version` V1 (one name) and V2 (dots between names, backticks around names with
dots). For ExtractField."""

from __future__ import annotations

from typing import Final

from icestream.transforms.failures import refused_setting

FIELD: Final = "field"


def field_path(text: str, version: str) -> tuple[str, ...]:
    """The names from the top to the field."""
    if version.upper() == "V1":
        return (text,)
    steps, at = [], 0
    while at < len(text):
        step, at = _quoted(text, at) if text[at] == "`" else _plain(text, at)
        steps.append(step)
    if text.endswith("."):
        steps.append("")
    return tuple(steps)


def _plain(text: str, start: int) -> tuple[str, int]:
    """A step up to the next dot, and where the one after it begins."""
    end = text.find(".", start)
    return (text[start:], len(text)) if end < 0 else (text[start:end], end + 1)


def _quoted(text: str, start: int) -> tuple[str, int]:
    """A step in backticks. A backtick ends it only before a dot or at the end of the path; there, a
    backslash before the backtick makes it part of the name."""
    step, begin, at = "", start + 1, start + 1
    while (at := text.find("`", at)) >= 0:
        escaped = text[at - 1] == "\\"
        last = at == len(text) - 1
        if last and escaped:
            break
        if last:
            return step + text[begin:at], len(text)
        if text[at + 1] == ".":
            if not escaped:
                return step + text[begin:at], at + 2
            step += text[begin : at - 1] + "`"
            begin = at + 1
        at += 1
    problem = (
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
        f"position {start} to escape it"
    )
    raise refused_setting(FIELD, problem)
