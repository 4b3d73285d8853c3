"""Container images from archives in S3: what a cluster asks for, what was pushed, and how one gets from the
first to the second. The reconciliation of a cluster calls `images_turn`, in a thread: it may take minutes.

What is remembered between turns is in the status of the resource: an operator that was restarted fetches
nothing again, and waits as long after a failure as the one before it would have done.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from icestream.api.errors import IcestreamError
from icestream.resilience.backoff import exponential

PUSHED: Final = "ImagesPushed"
LOOK_AGAIN: Final = 300.0
"""Seconds between two looks at an archive that was pushed."""
_FIRST: Final = 30.0
_LONGEST: Final = 1800.0
_FIRST_LASTING: Final = 3600.0
"""An archive that is broken stays so until another is uploaded, which is seen at once by its ETag."""
_LONGEST_LASTING: Final = 86_400.0
_REFERENCE: Final = re.compile(r"[A-Za-z0-9.:/_\[\]-]{1,400}@sha256:[0-9a-f]{64}")


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


@dataclass(frozen=True)
class ArchiveVersion:
    """Which archive is in the store now."""

    etag: str
    size: int


class ImageSource(Protocol):
    """The store and the registry; `image_fetch` has the real ones. Each raises `ImageFailed`."""

    def look(self, image: ImageWanted) -> ArchiveVersion:
        """Cheap: asked in every turn."""

    def is_there(self, pushed: ImagePushed) -> bool:
        """Whether the registry still has it; cheap."""

    def fetch_and_push(self, image: ImageWanted, version: ArchiveVersion) -> str:
        """The reference by digest. May move gigabytes."""


def images_turn(
    wanted: ImagesWanted, remembered: Mapping[str, Any], now: dt.datetime, source: ImageSource
) -> ImagesOutcome:
    """Looks whether all images are in the registry, and brings those that are not. Never raises because of
    an archive, a store or a registry."""
    states = [
        _image_turn(image, _fingerprint(wanted, image), _State.parsed(image.role, remembered), now, source)
        for image in wanted.images
    ]
    failed = next((one for one in states if one.failure), None)
    noted = next((one for one in states if one.note), None)
    if failed and failed.failure:
        reason, message = failed.failure.reason, f"{failed.role}: {failed.failure.message}"
    elif noted and noted.note:
        reason, message = noted.note.reason, f"{noted.role}: {noted.note} (the image of before is kept)"
    else:
        reason, message = PUSHED, f"the registry has {len(states)} images that were asked for"
    waits = [(one.failure.retry_at - now).total_seconds() for one in states if one.failure]
    return ImagesOutcome(
        references={one.role: one.pushed.reference for one in states if one.pushed},
        is_ready=failed is None,
        reason=reason,
        message=message,
        status={one.role: one.told() for one in states},
        look_again=max(1.0, min([LOOK_AGAIN, *waits])),
    )


@dataclass(frozen=True)
class _Failure:
    reason: str
    message: str
    etag: str
    """Of the archive that failed; empty: none was seen."""
    wanted: str
    count: int
    """In a row."""
    retry_at: dt.datetime


@dataclass(frozen=True)
class _State:
    role: str
    pushed: ImagePushed | None = None
    failure: _Failure | None = None
    note: ImageFailed | None = None
    """Why it could not be seen whether all is well."""

    @classmethod
    def parsed(cls, role: str, remembered: Mapping[str, Any]) -> _State:
        """A status is other people's text as well: what is not as we wrote it is forgotten."""
        told = remembered.get(role)
        if not isinstance(told, Mapping):
            return cls(role)
        try:
            pushed = ImagePushed(role, told["reference"], told["etag"], int(told["size"]), told["wanted"])
            known = pushed if _REFERENCE.fullmatch(pushed.reference) else None
        except (KeyError, TypeError, ValueError):
            known = None
        try:
            own = told["failure"]
            retry_at = dt.datetime.fromisoformat(own["retryAt"]).astimezone(dt.UTC)
            failure = _Failure(
                str(own["reason"]),
                str(own["message"]),
                str(own["etag"]),
                str(own["wanted"]),
                min(max(int(own["count"]), 0), 1000),
                retry_at,
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            failure = None
        return cls(role, known, failure)

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self.pushed:
            own = self.pushed
            told = {"reference": own.reference, "etag": own.etag, "size": own.size, "wanted": own.wanted}
        if self.failure:
            told["failure"] = {
                "reason": self.failure.reason,
                "message": self.failure.message,
                "etag": self.failure.etag,
                "wanted": self.failure.wanted,
                "count": self.failure.count,
                "retryAt": self.failure.retry_at.astimezone(dt.UTC).isoformat(timespec="seconds"),
            }
        return told


def _image_turn(
    image: ImageWanted, wanted: str, state: _State, now: dt.datetime, source: ImageSource
) -> _State:
    pushed = state.pushed
    is_current = pushed is not None and pushed.wanted == wanted
    try:
        version = source.look(image)
        is_same = pushed is not None and (pushed.etag, pushed.size) == (version.etag, version.size)
        if pushed and is_current and is_same and source.is_there(pushed):
            return _State(image.role, pushed)
    except ImageFailed as error:
        if is_current:
            return _State(image.role, pushed, note=error)
        return _State(image.role, pushed, _failure(error, "", wanted, state.failure, now))
    before = state.failure
    if before and (before.etag, before.wanted) == (version.etag, wanted) and now < before.retry_at:
        return state
    try:
        reference = source.fetch_and_push(image, version)
    except ImageFailed as error:
        return _State(image.role, pushed, _failure(error, version.etag, wanted, before, now))
    return _State(image.role, ImagePushed(image.role, reference, version.etag, version.size, wanted))


def _failure(
    error: ImageFailed, etag: str, wanted: str, before: _Failure | None, now: dt.datetime
) -> _Failure:
    is_same = before is not None and (before.etag, before.wanted) == (etag, wanted)
    count = before.count + 1 if before and is_same else 1
    first, longest = (_FIRST_LASTING, _LONGEST_LASTING) if error.is_lasting else (_FIRST, _LONGEST)
    wait = exponential(first, longest, count)
    return _Failure(error.reason, str(error), etag, wanted, count, now + dt.timedelta(seconds=wait))


def _fingerprint(wanted: ImagesWanted, image: ImageWanted) -> str:
    """Of all that decides which bytes go where; names of Secrets do not."""
    parts = (wanted.store.bucket, wanted.store.endpoint, wanted.store.region, wanted.registry.url)
    text = json.dumps([*parts, image.path, image.source, image.target, image.sha256])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
