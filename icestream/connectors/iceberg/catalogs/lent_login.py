"""Catalogs whose login to the object store is lent for a time: the login of an assumed role.

PyIceberg's catalogs read their properties in many places; so here the properties themselves have the login
that holds now. Mixed into the catalogs of `guarded_catalogs.py`.
"""

from __future__ import annotations

from typing import Any

from icestream.aws_roles import Role
from icestream.connectors.iceberg.catalogs.aws_login import assumed, role_of


class LentLogin:
    """The role is that of the connector's config: what a server adds later changes the rest only."""

    _settings: dict[str, Any] | None = None
    _role: Role | None = None

    @property
    def properties(self) -> dict[str, Any]:
        return assumed(self._settings or {}, self._role) if self._role else self._settings or {}

    @properties.setter
    def properties(self, settings: dict[str, Any]) -> None:
        if self._settings is None:
            self._role = role_of(settings)
        self._settings = settings
