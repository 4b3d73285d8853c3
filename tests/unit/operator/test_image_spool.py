"""The folder that archives of images pass through: one for all clusters, of all tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icestream.operator import image_fetch
from icestream.operator.image_fetch import S3Images
from icestream.operator.image_fetching import ImageFetching
from icestream.operator.images import (
    ArchiveStore,
    ArchiveVersion,
    ImageFailed,
    ImageSecrets,
    ImagesWanted,
    ImageWanted,
    TargetRegistry,
)
from icestream.operator.keys import Key
from icestream.operator.references import Contents
from icestream.operator.resources.cluster import parse_cluster

WORKER = ImageWanted("worker", "worker.tar", "icestream/worker:1")
WANTED = ImagesWanted(ArchiveStore("b"), TargetRegistry("registry.example.com"), (WORKER,))


def _cluster(uid: str) -> Any:
    images = {"worker": {"path": "worker.tar"}}
    spec = {"kafka": {"bootstrapServers": "k:9092"}, "images": images}
    spec |= {"s3": {"bucket": "b"}, "registry": {"url": "registry.example.com"}}
    metadata = {"name": "a", "namespace": "n", "uid": uid}
    return parse_cluster(
        {
            "apiVersion": "icestream.dev/v1alpha1",
            "kind": "IcestreamCluster",
            "metadata": metadata,
            "spec": spec,
        }
    )


class _Downloads:
    """Instead of S3: each leaves the half of an archive."""

    def __init__(self, wanted: ImagesWanted, secrets: ImageSecrets, spool: Path, **_: Any) -> None:
        self._spool = spool

    def look(self, image: ImageWanted) -> ArchiveVersion:
        return ArchiveVersion("e", 10)

    def fetch_and_push(self, image: ImageWanted, version: ArchiveVersion) -> str:
        (self._spool / "worker-1.archive").write_bytes(b"half")
        raise ImageFailed("RegistryUnavailable", "it is away", is_lasting=False)


def test_what_was_fetched_goes_with_its_cluster_and_with_its_namesake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_fetch, "S3Images", _Downloads)
    fetching = ImageFetching(None, tmp_path)  # type: ignore[arg-type]
    for uid in ("first", "second"):
        fetching.turn(_cluster(uid), {}, Contents(), False)
        assert len(list(tmp_path.rglob("*.archive"))) == 1
    fetching.forget(Key("IcestreamCluster", "n", "another"))
    assert len(list(tmp_path.rglob("*.archive"))) == 1
    fetching.forget(Key("IcestreamCluster", "n", "a"))
    assert list(tmp_path.iterdir()) == []


def test_archives_of_all_clusters_together_have_a_limit(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    others.mkdir()
    (others / "worker-1.archive").write_bytes(b"x" * 600)
    source = S3Images(WANTED, ImageSecrets(), mine, of_all=tmp_path, most_of_all=1_000)
    with pytest.raises(ImageFailed, match="wait for the others") as told:
        source._fetched(WORKER, ArchiveVersion("e", 500))
    assert told.value.reason == "SpoolFull"
    assert not told.value.is_lasting
