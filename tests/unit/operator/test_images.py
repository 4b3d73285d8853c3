"""When an image is fetched, kept, or tried again later."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from icestream.operator.images import (
    ArchiveStore,
    ArchiveVersion,
    ImageFailed,
    ImagePushed,
    ImagesOutcome,
    ImagesWanted,
    ImageWanted,
    TargetRegistry,
    images_turn,
)

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
STORE, REGISTRY = ArchiveStore("images"), TargetRegistry("registry.example.com")
WORKER = ImageWanted("worker", "worker.tar", "icestream/worker:1")
WANTED = ImagesWanted(STORE, REGISTRY, (WORKER,))


def reference(number: int) -> str:
    return f"registry.example.com/icestream/worker@sha256:{number:064x}"


@dataclass
class Source:
    """A store and a registry that do as they are told."""

    version: ArchiveVersion = field(default_factory=lambda: ArchiveVersion('"one"', 10))
    digest: int = 1
    look_error: ImageFailed | None = None
    registry_error: ImageFailed | None = None
    push_error: ImageFailed | None = None
    has_it: bool = True
    fetched: list[str] = field(default_factory=list)

    def look(self, image: ImageWanted) -> ArchiveVersion:
        if self.look_error:
            raise self.look_error
        return self.version

    def is_there(self, pushed: ImagePushed) -> bool:
        if self.registry_error:
            raise self.registry_error
        return self.has_it

    def fetch_and_push(self, image: ImageWanted, version: ArchiveVersion) -> str:
        self.fetched.append(version.etag)
        if self.push_error:
            raise self.push_error
        return reference(self.digest)


def turn(
    source: Source, remembered: Any = None, after: float = 0.0, wanted: ImagesWanted = WANTED
) -> ImagesOutcome:
    """What is remembered goes through JSON, as in a status."""
    known = json.loads(json.dumps(remembered or {}))
    return images_turn(wanted, known, NOW + dt.timedelta(seconds=after), source)


def failed(reason: str = "RegistryUnavailable", *, is_lasting: bool = False) -> ImageFailed:
    return ImageFailed(reason, "it went wrong", is_lasting=is_lasting)


def test_an_image_is_fetched_once() -> None:
    source = Source()
    first = turn(source)
    assert first.is_ready
    assert first.references == {"worker": reference(1)}
    again = turn(source, first.status, after=120)
    assert (again.references, again.status, source.fetched) == (first.references, first.status, ['"one"'])


def test_it_is_fetched_anew_when_archive_spec_or_registry_changed() -> None:
    source = Source()
    status = turn(source).status
    source.version, source.digest = ArchiveVersion('"two"', 10), 2
    changed = turn(source, status)
    assert changed.references == {"worker": reference(2)}
    other = ImagesWanted(STORE, REGISTRY, (ImageWanted("worker", "worker.tar", "icestream/worker:2"),))
    turn(source, changed.status, wanted=other)
    source.has_it = False
    turn(source, changed.status)
    assert source.fetched == ['"one"', '"two"', '"two"', '"two"']


def test_a_broken_archive_is_a_reason_and_not_fetched_again_until_it_changes() -> None:
    source = Source(push_error=failed("ImageArchiveError", is_lasting=True))
    told = turn(source)
    assert (told.is_ready, told.reason, told.message) == (False, "ImageArchiveError", "worker: it went wrong")
    assert told.references == {}
    for minutes in range(1, 60):
        told = turn(source, told.status, after=minutes * 60)
    assert len(source.fetched) == 1
    source.version, source.push_error = ArchiveVersion('"mended"', 10), None
    assert turn(source, told.status, after=3590).is_ready


def test_what_failed_is_tried_again_later_and_later() -> None:
    source = Source(push_error=failed())
    status: Any = {}
    fetches = []
    for second in range(0, 4 * 3600, 30):
        before = len(source.fetched)
        status = turn(source, status, after=second).status
        if len(source.fetched) > before:
            fetches.append(second)
    waits = [later - sooner for sooner, later in itertools.pairwise(fetches)]
    assert waits[:6] == [30, 60, 120, 240, 480, 960]
    assert set(waits[6:]) == {1800}


def test_pods_keep_their_image_while_a_newer_one_is_broken() -> None:
    source = Source()
    status = turn(source).status
    source.version = ArchiveVersion('"two"', 10)
    source.push_error = failed("ImageArchiveError", is_lasting=True)
    told = turn(source, status)
    assert not told.is_ready
    assert told.references == {"worker": reference(1)}
    assert turn(source, told.status, after=60).references == {"worker": reference(1)}


@pytest.mark.parametrize("part", ["look_error", "registry_error"])
def test_an_outage_changes_nothing_for_an_image_that_was_pushed(part: str) -> None:
    source = Source()
    status = turn(source).status
    setattr(source, part, failed("Unavailable"))
    told = turn(source, status)
    assert (told.is_ready, told.reason) == (True, "Unavailable")
    assert told.status == status
    assert len(source.fetched) == 1


def test_an_archive_that_is_not_there_is_a_reason() -> None:
    told = turn(Source(look_error=failed("ArchiveNotFound")))
    assert (told.is_ready, told.reason, told.references) == (False, "ArchiveNotFound", {})
    assert turn(Source(), told.status, after=1).is_ready


@pytest.mark.parametrize(
    "status",
    [
        {"worker": 5},
        {"worker": {"reference": "evil image", "etag": '"one"', "size": 10, "wanted": "x"}},
        {"worker": {"failure": {"retryAt": "never", "count": "many"}}},
        {"worker": {"reference": None, "size": {}}},
    ],
)
def test_a_status_that_others_wrote_is_forgotten(status: Any) -> None:
    source = Source()
    assert turn(source, status).references == {"worker": reference(1)}


def test_one_image_does_not_wait_for_another() -> None:
    class OneBroken(Source):
        def fetch_and_push(self, image: ImageWanted, version: ArchiveVersion) -> str:
            if image.role == "coordinator":
                raise failed("ImageArchiveError", is_lasting=True)
            return super().fetch_and_push(image, version)

    both = ImagesWanted(
        STORE, REGISTRY, (WORKER, ImageWanted("coordinator", "c.tar", "icestream/coordinator"))
    )
    told = turn(OneBroken(), wanted=both)
    assert told.references == {"worker": reference(1)}
    assert (told.is_ready, told.message) == (False, "coordinator: it went wrong")
