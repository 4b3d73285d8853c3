"""What happens to a key that nobody knows: it is refused, or accepted with a warning; never silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import ConfigDef
from icestream.api.errors import Problem

POLICY: Final = "icestream.unknown.keys"


@dataclass(frozen=True)
class UnknownKeys:
    """The verdict on all unknown keys of one config; `suggestions` has the known key for each typo."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    suggestions: dict[str, str]


def judge_unknown_keys(
    definition: ConfigDef,
    keys: Iterable[str],
    policy: str,
    families: Mapping[str, ConfigDef] | None = None,
    workers_policy: str = "",
) -> UnknownKeys:
    """Apply `icestream.unknown.keys` (error, typos or accept) to the keys outside the definition.

    `families`: what keys below a prefix may be meant to be, by the prefix; the longest prefix counts.
    `workers_policy`: error leaves a connector no choice of its own.
    """
    is_workers = workers_policy == "error"
    policy = "error" if is_workers else policy
    way_out = "" if is_workers else f", or set {POLICY}=accept"
    problems: list[Problem] = []
    warnings: list[str] = []
    suggestions: dict[str, str] = {}
    for key, close in definition.unknown(keys).items():
        suggestion = _suggestion(key, close, families or {})
        if suggestion:
            suggestions[key] = suggestion
        hint = f"; did you mean '{suggestion}'?" if suggestion else ""
        if policy == "error" or (policy == "typos" and suggestion):
            remedy = hint or f"; remove it{way_out}"
            problems.append(Problem(key, f"Unknown configuration '{key}'{remedy}"))
        else:
            warnings.append(f"'{key}' is not a known configuration and has no effect{hint}")
    return UnknownKeys(tuple(problems), tuple(warnings), suggestions)


def _suggestion(key: str, close: str | None, families: Mapping[str, ConfigDef]) -> str | None:
    prefix = max((one for one in families if key.startswith(one)), key=len, default=None)
    if prefix is None:
        return close
    short = key.removeprefix(prefix)
    meant = families[prefix].unknown([short]).get(short)
    return prefix + meant if meant else None
