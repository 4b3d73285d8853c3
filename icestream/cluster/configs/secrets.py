"""Values that config providers put into a config, hidden in whatever is said of it.

Used by the reconciler for statuses and traces, and by the validation of configs.
"""

from __future__ import annotations

import string
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import ConfigError, FatalError, IcestreamError, Problem
from icestream.cluster.configs.providers import placeholders
from icestream.logs import hidden

_PART: Final = 8
_SHORTEST_PART: Final = 4
_PARTLY_HIDDEN: Final = "[hidden]"
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def secrets_of(given: Config, resolved: Config) -> dict[str, str]:
    """What the providers put in, and the placeholder for it: whole values, and the parts of each."""
    secrets: dict[str, str] = {}
    for key, value in resolved.items():
        if value != given.get(key, value):
            secrets |= _parts(given[key], value) | {value: given[key]}
    return {secret: placeholder for secret, placeholder in secrets.items() if secret}


def _parts(given: str, resolved: str) -> dict[str, str]:
    """`a-${env:X}-b` and `a-42-b` give 42."""
    found = list(placeholders(given))
    parts: dict[str, str] = {}
    begin = found[0].start if found else 0
    for placeholder, following in zip(found, [*found[1:], None], strict=True):
        between = given[placeholder.end : following.start if following else len(given)]
        end = resolved.find(between, begin) if following else len(resolved) - len(between)
        parts[resolved[begin:end]] = placeholder.text
        begin = end + len(between)
    return parts


def discreet(text: str, secrets: Mapping[str, str]) -> str:
    """The text without the secrets, and without longer parts of them, in capital letters or not.

    A sentence may tell an item of a list, the beginning of a long value, or what became of it.
    """
    shown = hidden(text, secrets)
    plain = shown.translate(_LOWER)
    marked = bytearray(len(plain))
    for secret, placeholder in secrets.items():
        size = min(_PART, len(secret))
        if size >= _SHORTEST_PART:
            known = placeholder.translate(_LOWER)
            _mark(plain, secret.translate(_LOWER), size, known, marked)
    return _without(shown, marked) if any(marked) else shown


def _mark(plain: str, secret: str, size: int, known: str, marked: bytearray) -> None:
    """Where a part of the secret stands that is not in the config as it was given."""
    for at in range(len(plain) - size + 1):
        part = plain[at : at + size]
        if part in secret and part not in known:
            marked[at : at + size] = b"\1" * size


def _without(text: str, marked: bytearray) -> str:
    shown, at = [], 0
    while at < len(text):
        end = at
        while end < len(text) and marked[end] == marked[at]:
            end += 1
        shown.append(_PARTLY_HIDDEN if marked[at] else text[at:end])
        at = end
    return "".join(shown)


@contextmanager
def concealing(secrets: Mapping[str, str]) -> Iterator[None]:
    """What goes wrong inside is told with placeholders."""
    try:
        yield
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        if discreet(trace, secrets) == trace:
            raise
        raise _concealed(error, secrets) from None


def discreet_problem(problem: Problem, secrets: Mapping[str, str]) -> Problem:
    """Its key, too: lists such as `transforms` make keys of their values."""
    return Problem(discreet(problem.key, secrets), discreet(problem.message, secrets))


def _concealed(error: Exception, secrets: Mapping[str, str]) -> IcestreamError:
    if isinstance(error, ConfigError):
        return type(error)([discreet_problem(one, secrets) for one in error.problems])
    message = discreet(str(error), secrets)
    if isinstance(error, IcestreamError):
        return type(error)(message)
    return FatalError(f"{type(error).__name__}: {message}")
