"""Names that Kubernetes takes, from those that users have given. The same text always gets the same name, two
texts never do."""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST_LABEL: Final = 63
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASH: Final = 8


def is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def dns_label(text: str, longest: int = LONGEST_LABEL) -> str:
    """The text itself if it is a DNS label; else what can be read of it, with a hash of the whole."""
    if len(text) <= longest and _LABEL.fullmatch(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
    if not readable[0].isalpha():
        readable = f"x-{readable}"
    return f"{readable[: longest - _HASH - 1].rstrip('-')}-{_digest(text)}"


def label_value(text: str) -> str:
    """The same for values of labels, which may have capitals, dots and underscores."""
    if not text or (len(text) <= LONGEST_LABEL and _VALUE.fullmatch(text)):
        return text
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-_.") or "x"
    return f"{readable[: LONGEST_LABEL - _HASH - 1].rstrip('-_.')}-{_digest(text)}"


def full_address(address: str, namespace: str) -> str:
    """`host:port` as it reads in every namespace: a name without a dot is a Service of the pod's own."""
    host, colon, port = address.lower().partition(":")
    for end in (".svc.cluster.local.", ".svc.cluster.local", ".svc"):
        host = host.removesuffix(end)
    return f"{host if '.' in host or not host else f'{host}.{namespace}'}{colon}{port}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
