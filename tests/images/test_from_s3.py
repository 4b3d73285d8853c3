"""Archives in S3 (moto) to a real registry, as the operator brings them."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from icestream.embedded import ports
from icestream.image_archives.limits import Limits
from icestream.operator.image_fetch import S3Images
from icestream.operator.images import (
    ArchiveStore,
    ImageFailed,
    ImageSecrets,
    ImagesOutcome,
    ImagesWanted,
    ImageWanted,
    TargetRegistry,
    images_turn,
)
from tests.images import made
from tests.images.registries import PASSWORD, docker_config, password_file, running_registry

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
ARCHIVE = made.tar_of(made.docker_files())
KEYS = {"AWS_ACCESS_KEY_ID": b"some-key", "AWS_SECRET_ACCESS_KEY": b"s3cret"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


class Bucket:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.name = f"images-{uuid.uuid4().hex[:8]}"
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="some-key",
            aws_secret_access_key="s3cret",
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket=self.name)

    def put(self, path: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=path, Body=content)


@pytest.fixture
def bucket(s3: dict[str, str]) -> Bucket:
    return Bucket(s3["iceberg.catalog.s3.endpoint"])


def wanted(bucket: Bucket, host: str, **image: Any) -> ImagesWanted:
    asked = {"role": "worker", "path": "worker.tar", "target": f"{bucket.name}/worker:1.0", **image}
    store = ArchiveStore(bucket.name, bucket.endpoint, "us-east-1", "s3-login")
    return ImagesWanted(store, TargetRegistry(host, is_insecure=True), (ImageWanted(**asked),))


def turn(
    asked: ImagesWanted, spool: Path, remembered: Any = None, secrets: ImageSecrets | None = None, **more: Any
) -> ImagesOutcome:
    source = S3Images(asked, secrets or ImageSecrets(store=KEYS), spool, **more)
    return images_turn(asked, json.loads(json.dumps(remembered or {})), NOW, source)


def test_an_archive_in_s3_becomes_an_image_by_digest(bucket: Bucket, host: str, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE)
    asked = wanted(bucket, host, source=made.TAG, sha256=hashlib.sha256(ARCHIVE).hexdigest())
    told = turn(asked, tmp_path)
    assert told.is_ready, told.message
    repository, _, digest = told.references["worker"].partition("/")[2].partition("@")
    answer = httpx.get(f"http://{host}/v2/{repository}/manifests/{digest}", timeout=60)
    assert answer.status_code == 200
    assert list(tmp_path.iterdir()) == []
    # Not fetched again, which is shown by an archive that could not be: the ETag is what is looked at.
    calls: list[str] = []
    source = S3Images(asked, ImageSecrets(store=KEYS), tmp_path)
    source.fetch_and_push = lambda *_: calls.append("fetched") or ""  # type: ignore[method-assign,func-returns-value]
    again = images_turn(asked, told.status, NOW, source)
    assert (again.references, calls) == (told.references, [])


def test_an_image_that_the_registry_lost_is_pushed_again(bucket: Bucket, host: str, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE)
    asked = wanted(bucket, host)
    told = turn(asked, tmp_path)
    repository, _, digest = told.references["worker"].partition("/")[2].partition("@")
    url = f"http://{host}/v2/{repository}/manifests/{digest}"
    assert httpx.delete(url, timeout=60).status_code == 202
    assert turn(asked, tmp_path, told.status).references == told.references
    assert httpx.get(url, timeout=60).status_code == 200


def test_another_checksum_is_a_reason(bucket: Bucket, host: str, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE)
    told = turn(wanted(bucket, host, sha256="0" * 64), tmp_path)
    assert (told.is_ready, told.reason, told.references) == (False, "ChecksumMismatch", {})
    assert list(tmp_path.iterdir()) == []


def test_a_broken_archive_is_a_reason(bucket: Bucket, host: str, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE[:5000])
    told = turn(wanted(bucket, host), tmp_path)
    assert (told.is_ready, told.reason) == (False, "ImageArchiveError")
    assert "cut off" in told.message
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_forbidden_or_away_is_a_reason(bucket: Bucket, host: str, tmp_path: Path) -> None:
    assert turn(wanted(bucket, host), tmp_path).reason == "ArchiveNotFound"
    bucket.put("worker.tar", ARCHIVE)
    asked = wanted(bucket, host)
    away = replace(asked, store=replace(asked.store, endpoint=f"http://{ports.HOST}:{ports.free_port()}"))
    assert turn(away, tmp_path).reason == "StoreUnavailable"
    nowhere = replace(asked, store=replace(asked.store, endpoint="no address"))
    assert turn(nowhere, tmp_path).reason == "StoreUnavailable"
    gone = replace(asked, registry=TargetRegistry(f"{ports.HOST}:{ports.free_port()}", is_insecure=True))
    assert turn(gone, tmp_path).reason == "RegistryUnavailable"
    plain = replace(asked, registry=TargetRegistry(f"http://{host}"))
    assert turn(plain, tmp_path).reason == "PreconditionError"
    assert turn(asked, tmp_path, secrets=ImageSecrets(store={})).reason == "PreconditionError"
    assert turn(asked, tmp_path, limits=Limits(archive_bytes=100)).reason == "ArchiveTooLarge"
    assert list(tmp_path.iterdir()) == []


def test_a_download_goes_on_where_it_was_cut_off(bucket: Bucket, host: str, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE)
    asked = wanted(bucket, host)
    source = S3Images(asked, ImageSecrets(store=KEYS), tmp_path)
    (image,) = asked.images
    version = source.look(image)
    whole = source._fetched(image, version)
    whole.write_bytes(ARCHIVE[:3000])
    (tmp_path / "worker-of-yesterday.archive").write_bytes(b"old")
    assert source._fetched(image, version).read_bytes() == ARCHIVE
    assert list(tmp_path.iterdir()) == [whole]
    whole.write_bytes(ARCHIVE[:3000])
    bucket.put("worker.tar", ARCHIVE[::-1])
    with pytest.raises(ImageFailed, match="replaced while it was fetched"):
        source.fetch_and_push(image, version)


def test_the_login_of_the_registry_is_used_and_never_told(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("worker.tar", ARCHIVE)
    file = password_file(tmp_path / "auth")
    auth = {"htpasswd": {"realm": "here", "path": str(file)}}
    with running_registry(tmp_path / "registry", auth) as guarded:
        asked = wanted(bucket, guarded)

        def told(config: bytes) -> ImagesOutcome:
            return turn(asked, tmp_path / "spool", secrets=ImageSecrets(KEYS, {".dockerconfigjson": config}))

        wrong = told(docker_config(guarded, password="not-" + PASSWORD))
        assert (wrong.is_ready, wrong.reason) == (False, "RegistryRefused")
        # Refused before anything was fetched.
        assert not (tmp_path / "spool").exists()
        elsewhere = told(docker_config("registry.example.com"))
        assert (elsewhere.is_ready, elsewhere.reason) == (False, "RegistryRefused")
        right = told(docker_config(guarded))
        assert right.is_ready, right.message
        assert PASSWORD not in json.dumps([wrong.status, elsewhere.status, right.status, wrong.message])
