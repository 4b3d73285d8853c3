"""Secrets that no line shows: by the name of a setting, by their place in an address, by their own text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_HIDDEN: Final = "[hidden]"
_SECRET_KEY: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|jaas|private|certificate[._-]chain|keystore[._-]key"
    r"|(access|api|account|encryption|signing|sas|shared)[._-]?key|apikey|^sasl\.oauthbearer\..*assertion"
    r"|basic[._-]auth[._-]user[._-]info|authorization",
    re.IGNORECASE,
)
_SECRET_IN_VALUE: Final = (
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+@"), r"\1" + _HIDDEN + "@"),
    (re.compile(r"((?:password|secret|token)=)[^&;\s]+", re.IGNORECASE), r"\1" + _HIDDEN),
)
_SHORTEST_CONCEALED: Final = 4
"""Shorter texts are everywhere: lines without them could not be read."""
_concealed: dict[str, str] = {}


def conceal(secrets: Mapping[str, str]) -> None:
    """From now on, no line shows these secrets; what they map to stands there instead."""
    global _concealed
    more = {secret: shown for secret, shown in secrets.items() if len(secret) >= _SHORTEST_CONCEALED}
    _concealed = _concealed | more


def concealed() -> Mapping[str, str]:
    """All secrets that no line shows, and what stands there instead."""
    return _concealed


def concealed_in(texts: Iterable[str]) -> dict[str, str]:
    """Of what is concealed here, what stands in these texts: for another process that gets them."""
    known = _concealed.items()
    joined = "\n".join(texts)
    return {secret: shown for secret, shown in known if secret in joined}


def discreet(text: str) -> str:
    """The text without any secret that this process conceals."""
    return hidden(text, _concealed)


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """The text with something else for each secret, the longest first: one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, secrets[secret])
    return text


def masked(config: Mapping[str, str]) -> dict[str, str]:
    """The config with passwords, keys, tokens and the like hidden: the only form that may be logged."""
    return {key: _HIDDEN if _SECRET_KEY.search(key) else masked_value(value) for key, value in config.items()}


def masked_value(value: str) -> str:
    """A value with the secrets of URLs and connection strings hidden."""
    for pattern, replacement in _SECRET_IN_VALUE:
        value = pattern.sub(replacement, value)
    return value
