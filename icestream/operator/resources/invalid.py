"""The one way in which a resource can be refused."""

from __future__ import annotations

from icestream.api.errors import IcestreamError


class InvalidResource(IcestreamError):
    """A resource that cannot be followed; `reason` and `message` go into its condition NotReady."""

    def __init__(self, message: str, reason: str = "InvalidResourceException") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
