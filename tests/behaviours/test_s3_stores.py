"""What every store of objects promises the S3 sink: a folder, a bucket of moto, Google's and Azure's."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import pytest

from icestream.connectors.s3.stores.opening import open_store
from icestream.connectors.s3.stores.s3_store import S3Store
from icestream.connectors.s3.stores.store import AnswerLost, Exists, NoSuchUpload, ObjectStore, Upload
from tests.behaviours.test_sinks import bucket_config
from tests.clouds import CLOUDS, cloud_config

KEY = "topics/events/day=2026-11-16 ü/events+0+0000000000.json"
METADATA = {"icestream-batch": "b-1", "icestream-records": "3"}
LARGE = 6 * 2**20


@pytest.fixture(params=["folder", "moto", *CLOUDS])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    if request.param == "moto":
        config = bucket_config(request.getfixturevalue("s3"))
    elif request.param == "folder":
        config = {"store.url": f"file://{tmp_path}", "s3.bucket.name": "lake"}
    else:
        config = cloud_config(request.param, monkeypatch)
    json_format = "io.confluent.connect.s3.format.json.JsonFormat"
    return open_store(
        {**config, "format.class": json_format, "flush.size": "3", "s3.part.size": str(5 * 2**20)}
    )


def staged(store: ObjectStore, content: bytes = b"one\n", key: str = KEY) -> Upload:
    return store.upload(key, io.BytesIO(content), METADATA)


def test_an_upload_is_seen_when_it_is_complete_and_not_before(store: ObjectStore) -> None:
    upload = Upload.from_json(staged(store).to_json())
    assert store.facts(KEY) is None and store.read(KEY) is None
    assert list(store.list("topics/events/")) == []
    assert store.is_open(upload)
    assert [(one.key, one.id) for one in store.open_uploads("topics/events/")] == [(KEY, upload.id)]
    assert list(store.open_uploads("topics/other/")) == []
    store.complete(upload)
    assert store.read(KEY) == b"one\n"
    facts = store.facts(KEY)
    assert facts is not None and facts.size == 4
    assert {**facts.metadata} == METADATA
    assert [one.key for one in store.list("topics/events/")] == [KEY]
    assert not store.is_open(upload)
    assert list(store.open_uploads("")) == []


def test_only_one_of_two_uploads_gets_the_key(store: ObjectStore) -> None:
    first, second = staged(store), staged(store, b"two\n")
    store.complete(first)
    with pytest.raises(Exists):
        store.complete(second)
    assert store.read(KEY) == b"one\n"
    assert store.is_open(second)
    # Whoever completes again is told so, or that it is done.
    for _ in range(2):
        with contextlib.suppress(Exists, NoSuchUpload):
            store.complete(first)
    assert store.read(KEY) == b"one\n"


def test_an_object_is_replaced_if_it_is_still_the_one(store: ObjectStore) -> None:
    store.complete(staged(store))
    facts = store.facts(KEY)
    assert facts is not None
    late = staged(store, b"late\n")
    store.complete(staged(store, b"two\n"), facts.tag)
    assert store.read(KEY) == b"two\n"
    if not isinstance(store, S3Store):
        # moto does not keep this condition.
        with pytest.raises(Exists):
            store.complete(late, facts.tag)
    assert store.read(KEY) == b"two\n"
    if not isinstance(store, S3Store):
        with pytest.raises(Exists):
            store.complete(staged(store, key=f"{KEY}.gone"), facts.tag)
    now = store.facts(KEY)
    assert now is not None and now.tag != facts.tag and {**now.metadata} == METADATA


def test_an_upload_that_is_gone_is_not_completed(store: ObjectStore) -> None:
    upload = staged(store)
    store.abort(upload.key, upload.id)
    store.abort(upload.key, upload.id)
    assert not store.is_open(upload)
    # moto answers 500.
    with pytest.raises(AnswerLost if isinstance(store, S3Store) else NoSuchUpload):
        store.complete(upload)
    assert store.facts(KEY) is None


def test_large_and_empty_contents(store: ObjectStore) -> None:
    """Of several parts, from a file as tasks have them; and of none."""
    content = bytes(range(256)) * (LARGE // 256)
    with tempfile.SpooledTemporaryFile(2**20) as file:
        file.write(content)
        file.seek(0)
        store.complete(store.upload(KEY, file, METADATA))
    assert store.read(KEY) == content
    empty = f"{KEY}.empty"
    store.complete(staged(store, b"", empty))
    assert store.read(empty) == b""


def test_the_first_put_wins(store: ObjectStore) -> None:
    key = "topics/_icestream/job/00000000000000000001.json"
    assert store.get(key) is None
    store.put(key, b"one")
    with pytest.raises(Exists):
        store.put(key, b"two")
    assert store.get(key) == b"one"
    store.replace(key, b"three")
    assert store.get(key) == b"three"
    store.remove([key, key])
    assert store.get(key) is None
    store.put(key, b"four")


def test_lists_are_in_order_and_begin_after_a_key(store: ObjectStore) -> None:
    keys = [f"topics/events/partition={number}/a+{number}.json" for number in (2, 0, 1)]
    for key in (*keys, "topics/event", "topics/events-2/a.json"):
        store.replace(key, b"x")
    assert [one.key for one in store.list("topics/events/")] == sorted(keys)
    assert [one.key for one in store.list("topics/events/partition=1")] == [keys[2]]
    assert [one.key for one in store.list("topics/events/", after=keys[1])] == [keys[2], keys[0]]


@pytest.mark.parametrize("name", ["a b", "50%", "a%20b", "x#y", "q?z", "a&b=c+d", "[x]{y}", "ümläut", "~x'*"])
def test_names_stay_as_they_are(store: ObjectStore, name: str) -> None:
    key = f"topics/events/f={name}/events+0+1.json"
    store.complete(staged(store, key=key))
    assert [one.key for one in store.list("topics/events/")] == [key]
    assert store.read(key) == b"one\n"
