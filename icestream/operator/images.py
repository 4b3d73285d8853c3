"""Container images from archives in S3: what a cluster asks for, what was pushed, and how one gets from the
first to the second. The reconciliation of a cluster calls `images_turn`, in a thread: it may take minutes.

What is remembered between turns is in the status of the resource: an operator that was restarted fetches
nothing again, and waits as long after a failure as the one before it would have done.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icestream.api.errors import IcestreamError


@dataclass(frozen=True)
class ArchiveStore:
    """`spec.s3`: where the archives are."""

    bucket: str
    endpoint: str | None = None
    """None: Amazon's, of the region."""
    region: str | None = None
    credentials_secret: str | None = None
    """The name of a Secret; None: requests are not signed."""


@dataclass(frozen=True)
class TargetRegistry:
    """`spec.registry`: where images go."""

    url: str
    """`registry.example.com:5000`, perhaps with a path below which all repositories are."""
    secret: str | None = None
    """The name of a Secret of type `kubernetes.io/dockerconfigjson`."""
    is_insecure: bool = False
    """By plain HTTP."""


@dataclass(frozen=True)
class ImageWanted:
    """`spec.images.worker` or `spec.images.coordinator`."""

    role: str
    """`worker` or `coordinator`."""
    path: str
    """The key of the archive in the bucket."""
    target: str
    """`icestream/worker:1.0`, in the registry."""
    source: str | None = None
    """The tag of the image in the archive; needed where the archive has several."""
    sha256: str | None = None
    """Of the archive, in hexadecimal digits."""


@dataclass(frozen=True)
class ImagesWanted:
    """All that a cluster's spec says about images."""

    store: ArchiveStore
    registry: TargetRegistry
    images: tuple[ImageWanted, ...]


@dataclass(frozen=True)
class ImageSecrets:
    """The data of the Secrets that the spec names, decoded; None: it names none."""

    store: Mapping[str, bytes] | None = field(default=None, repr=False)
    registry: Mapping[str, bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ImagePushed:
    """An image that the registry has."""

    role: str
    reference: str
    """`host/repository@sha256:…`, for pods."""
    etag: str
    size: int
    """Of the archive that it came from."""
    wanted: str
    """A fingerprint of what the spec asked for then."""


class ImageFailed(IcestreamError):
    """An image that could not be had; the message is one sentence without secrets."""

    def __init__(self, reason: str, message: str, *, is_lasting: bool) -> None:
        super().__init__(message)
        self.reason = reason
        """A word for the condition."""
        self.is_lasting = is_lasting
        """Trying again is of no use before the archive or the spec changes."""


@dataclass(frozen=True)
class ImagesOutcome:
    """After one turn."""

    references: Mapping[str, str]
    """Role → reference by digest, of all images that can be used: also those of an older archive while a
    newer one is broken. A role that is missing has no image yet: its pods must not be made."""
    is_ready: bool
    """The condition `ImagesReady`."""
    reason: str
    message: str
    status: Mapping[str, Any]
    """For `status.images`; given back as `remembered` in the next turn."""
    look_again: float
    """In how many seconds a turn is worth while at the latest."""


FetchAndPush = Callable[[ImageWanted, ImagePushed | None], ImagePushed]
"""Raises `ImageFailed`."""


def images_turn(
    wanted: ImagesWanted, remembered: Mapping[str, Any], now: dt.datetime, fetch_and_push: FetchAndPush
) -> ImagesOutcome:
    """Looks whether all images are in the registry, and brings those that are not. Never raises because of
    an archive, a store or a registry."""
    raise NotImplementedError
