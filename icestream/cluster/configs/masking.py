"""Configs and texts as people see them who must not see secrets: the one place where they are hidden, for the
console, the log and the command line.

Secret is what a setting's type says (`Type.PASSWORD`), what the name of a key says (`logs.masked`), and, in
the value of any key, what stands where secrets stand: behind the user of a URL, in `password=…` of a query or
of a connection string, in JSON, in a header, in a private key. Placeholders of config providers are no
secrets: they only name one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.cluster.configs.providers import placeholders
from icestream.logs import masked, masked_value

MASK: Final = "[hidden]"
_SHORTEST: Final = 4
"""Characters of a secret that is hidden wherever it stands: shorter texts are everywhere."""
_NAMES: Final = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|assertion|authorization"
    r"|sig(?:nature)?|(?:access|api|account|private|shared|encryption|signing|sas)[_.-]?key"
)
_WORD: Final = re.compile(r"[A-Za-z_.\-]{1,20}|[0-9]{1,7}")
_LOGIN: Final = re.compile(r"""://[^/\s:@?#"']*+:(?!\d{1,5}(?:[/?#\s"',;]|$))""")
"""Up to the password of a URL; host:port is no login."""
_PASSWORD: Final = re.compile(r"""(?:\$\{[^}\s$]{0,300}\}|[^\s"'@])*+""")
_PLAIN_PASSWORD: Final = re.compile(r"""[^\s"'@]*+""")
_PATTERNS: Final = (
    # A token in place of the user; other schemes have names of buckets and containers there.
    re.compile(r"""(\bhttps?://)([^/\s:@?#"']+)(?=@)""", re.IGNORECASE),
    re.compile(
        # Each word is looked at once, however long it is: a value of a megabyte must not hold up the worker.
        rf"""((?:^|[^\w.\-])(?=[\w.\-]*?(?:{_NAMES}))[\w.\-]++[ \t]*+=[ \t]*)("""
        r""""[^"]*"|'[^']*'|[^&;,\s]+)""",
        re.IGNORECASE,
    ),
    re.compile(
        rf"""(["'](?=[\w.\-]*?(?:{_NAMES}))[\w.\-]++["'][ \t]*+:[ \t]*+)"""
        r"""("(?:[^"\\]|\\.)*"|[^\s,}"]+)""",
        re.IGNORECASE,
    ),
    re.compile(r"(\b(?:bearer|basic)[ \t]+)([A-Za-z0-9+/=._~\-]{8,})", re.IGNORECASE),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)([^-]*)"),
)


@dataclass(frozen=True)
class Masks:
    """What is secret in one config."""

    keys: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()
    """The secrets themselves, the longest first."""

    def text(self, text: str) -> str:
        """A sentence or a trace that may quote values of the config."""
        return shown_value(_without(text, self.values))

    def config(self, config: Config) -> dict[str, str]:
        """The config as it is shown."""
        # A secret that is a mere word, such as `default`, may well be a word elsewhere.
        telling = [value for value in self.values if not _WORD.fullmatch(value)]
        return {
            key: hidden_value(value) if key in self.keys else shown_value(_without(value, telling))
            for key, value in config.items()
        }


def masks_of(config: Config, settings: Iterable[Setting] = ()) -> Masks:
    """What is secret in a config, as far as its settings and its keys tell."""
    passwords = {setting.name for setting in settings if setting.type is Type.PASSWORD}
    keys = frozenset(key for key in config if key in passwords or is_secret(key))
    values = {config[key] for key in keys if not _is_placeholder(config[key])}
    long_enough = (value for value in values if len(value.strip()) >= _SHORTEST and value.strip() != "true")
    return Masks(keys, tuple(sorted(long_enough, key=len, reverse=True)))


def masked_config(config: Config, settings: Iterable[Setting] = ()) -> dict[str, str]:
    """The config without its secrets: the only form in which one may leave for a browser."""
    return masks_of(config, settings).config(config)


def hidden_config(config: Config, secrets: Collection[str]) -> dict[str, str]:
    """The same, for whoever knows the keys of the secrets already."""
    return {
        key: hidden_value(value) if key in secrets else shown_value(value) for key, value in config.items()
    }


def is_secret(key: str, definition: Setting | None = None) -> bool:
    """By its type, or by its name: keys under a prefix have no type."""
    is_password = definition is not None and definition.type is Type.PASSWORD
    return is_password or masked({key: ""})[key] == MASK


def hidden_value(value: str) -> str:
    """The value of a key that is secret: a mask, unless nothing but placeholders stands there."""
    return value if not value or _is_placeholder(value) else MASK


def shown_value(value: str) -> str:
    """The value of any other key: secrets inside of it are hidden."""
    return _shown(value, set())


def secrets_inside(value: str) -> set[str]:
    """What is hidden in the value of any other key: a sentence may tell it without the rest."""
    found: set[str] = set()
    _shown(value, found)
    return found


def _shown(value: str, found: set[str]) -> str:
    value = _without_logins(value, found)
    for pattern in _PATTERNS:
        value = pattern.sub(partial(_hide, found), value)
    return value if "${" in value else masked_value(value)


def _without_logins(text: str, found: set[str], password: re.Pattern[str] = _PASSWORD) -> str:
    """`user:password@` of URLs, whatever the password has in it.

    Not by one pattern: that looks for the `@` of each beginning anew, and a megabyte of them took seconds.
    """
    shown, at = [], 0
    while begin := _LOGIN.search(text, at):
        end = password.match(text, begin.end()).end()  # type: ignore[union-attr]
        secret = text[begin.end() : end]
        shown.append(text[at : begin.end()])
        if text[end : end + 1] == "@":
            shown.append(_hidden(secret, found))
        elif "@" in secret:
            # It stands inside of `${…}`, and may well be that of another login.
            inner = _without_logins(text[begin.start() : end], found, _PLAIN_PASSWORD)
            shown.append(inner[len(begin[0]) :])
        else:
            shown.append(secret)
        at = end
    return "".join(shown) + text[at:]


def _hide(found: set[str], match: re.Match[str]) -> str:
    secret = match[2].strip("\"'")
    if _hidden(secret, found) == secret:
        return match[0]
    quote = match[2][0] if match[2][0] in "\"'" else ""
    return f"{match[1]}{quote}{MASK}{quote}"


def _hidden(secret: str, found: set[str]) -> str:
    if not secret or secret == MASK or _is_placeholder(secret):
        return secret
    found.add(secret)
    return MASK


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _is_placeholder(value: str) -> bool:
    """Whether nothing but placeholders stands there."""
    return bool(value) and sum(one.end - one.start for one in placeholders(value)) == len(value)


def without_values(config: Config) -> Mapping[str, None]:
    """Its keys, for those who may see no values."""
    return dict.fromkeys(config)
