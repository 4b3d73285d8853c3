"""A cluster while its resource is read: what the fields add up to. Filled by the readers of this package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from icestream.operator.resources.cluster_spec import Notice, Reference, Tree, TrustedCertificates
from icestream.operator.resources.fields import Fields
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.names import is_subdomain

UNSUPPORTED: Final = "UnsupportedField"
UNKNOWN: Final = "UnknownField"
DEPRECATED: Final = "DeprecatedField"
FORBIDDEN: Final = "ForbiddenConfig"

_MOST_WARNINGS: Final = 50
_MOST_REFERENCES: Final = 500
"""Each Secret is asked for every few seconds."""

CLIENTS: Final = ("", "producer.", "consumer.", "admin.")
"""Whose settings of the connection a worker has: its own, and those of the clients that it makes."""


@dataclass
class Draft:
    properties: dict[str, str] = field(default_factory=dict)
    trusted: list[TrustedCertificates] = field(default_factory=list)
    secret_mounts: dict[str, str] = field(default_factory=dict)
    env: list[Tree] = field(default_factory=list)
    volumes: list[Tree] = field(default_factory=list)
    mounts: list[Tree] = field(default_factory=list)
    needs_token: bool = False
    _references: dict[Reference, None] = field(default_factory=dict)
    _warnings: dict[Notice, None] = field(default_factory=dict)

    def warn(self, reason: str, message: str) -> None:
        self._warnings[Notice(reason, message)] = None

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """As many as a person reads and a status can hold."""
        found = tuple(self._warnings)
        left = len(found) - _MOST_WARNINGS
        if left <= 0:
            return found
        return (
            *found[:_MOST_WARNINGS],
            Notice(UNKNOWN, f"{left} more warnings are left out; mend these first"),
        )

    def refer(self, kind: str, name: str) -> None:
        """It is asked for by this name: one with a path in it would lead to another namespace."""
        if not is_subdomain(name):
            raise InvalidResource(f"'{name[:80]}' is no name that a {kind} can have; mend it")
        self._references[Reference(kind, name)] = None
        if len(self._references) > _MOST_REFERENCES:
            raise InvalidResource(
                f"it refers to more than {_MOST_REFERENCES} Secrets and ConfigMaps; put their keys together"
            )

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(self._references)

    def has_no_effect(self, fields: Fields, known: tuple[str, ...]) -> None:
        """A warning for every field that nobody reads."""
        for path in fields.others(known):
            self.warn(UNKNOWN, f"{path} is not a field that is known here; it has no effect")

    def secret(self, fields: Fields, key: str) -> str:
        """The name of a Secret that pods use."""
        name = object_name(fields, key)
        self.refer("Secret", name)
        return name


def object_name(fields: Fields, key: str) -> str:
    name = fields.required(key)
    if not is_subdomain(name):
        raise InvalidResource(f"{fields.at(key)} is '{name[:80]}', which is no name of an object; mend it")
    return name
