"""The S3 sink's settings for Google and Azure: which store they mean, by which login, what is refused."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.cluster.configs.allowed_hosts import host_problems
from icestream.connectors.s3.clouds import place_of
from icestream.connectors.s3.plugin import S3SinkPlugin
from icestream.connectors.s3.settings import layout_config, parsed
from icestream.connectors.s3.stores.cloud_opening import client_settings
from icestream.connectors.s3.stores.cloud_store import CloudStore
from icestream.connectors.s3.stores.opening import open_store, store_settings
from icestream.connectors.s3.stores.store import Exists, Upload

FORMAT = {"format.class": "io.confluent.connect.s3.format.json.JsonFormat", "flush.size": "10"}
GOOGLE = {**FORMAT, "store.url": "gs://lake"}
AZURE = {**FORMAT, "store.url": "az://lake", "azblob.account.name": "lakeaccount"}
ACCOUNT = {
    "type": "service_account",
    "client_email": "a@b",
    "private_key": "-----BEGIN s3cret",
    "private_key_id": "1",
}
FOREIGN = {"gcs_base_url": "http://evil.example", "disable_oauth": True, "token_uri": "http://evil.example"}


def asked(config: dict[str, str]) -> dict[str, Any]:
    """What the client is made of."""
    return client_settings(config, parsed(config), None)


@pytest.mark.parametrize(
    "url, name, service",
    [
        ("gs://lake", "gs://lake", "https://storage.googleapis.com"),
        ("GCS://lake", "gs://lake", "https://storage.googleapis.com"),
        ("az://lake", "az://lakeaccount/lake", "https://lakeaccount.blob.core.windows.net"),
        (
            "abfss://lake@lakeaccount.dfs.core.windows.net/",
            "az://lakeaccount/lake",
            "https://lakeaccount.blob.core.windows.net",
        ),
        (
            "abfs://lake@lakeaccount.dfs.core.usgovcloudapi.net",
            "az://lakeaccount/lake",
            "https://lakeaccount.blob.core.usgovcloudapi.net",
        ),
    ],
)
def test_addresses(url: str, name: str, service: str) -> None:
    config = {**AZURE, "store.url": url}
    assert S3SinkPlugin().problems(config) == []
    assert (place_of(config).name, place_of(config).service) == (name, service)
    assert S3SinkPlugin().destination(config) == name
    assert S3SinkPlugin().packages(config) == {"obstore": "clouds"}
    # The bucket is in the address, or has a key of its own.
    assert place_of({**config, "s3.bucket.name": "lake"}) == place_of(config)


@pytest.mark.parametrize(
    "key, config",
    [
        ("store.url", {**GOOGLE, "store.url": "gs://"}),
        ("store.url", {**GOOGLE, "store.url": "gs://lake/folder"}),
        ("store.url", {**GOOGLE, "store.url": "gs://user:password@lake"}),
        ("store.url", {**GOOGLE, "store.url": "gs://la%2Fke"}),
        ("s3.ssea.name", {**GOOGLE, "s3.ssea.name": "AES256"}),
        ("s3.object.tagging", {**AZURE, "s3.object.tagging": "true"}),
        ("store.url", {**GOOGLE, "s3.bucket.name": "other"}),
        ("store.url", {**AZURE, "store.url": "abfss://lake@evil.example"}),
        ("azblob.account.name", {**FORMAT, "store.url": "az://lake"}),
        (
            "azblob.account.name",
            {**AZURE, "store.url": "abfs://lake@another.dfs.core.windows.net"},
        ),
        ("azblob.sas.token", {**AZURE, "azblob.account.key": "a2V5", "azblob.sas.token": "sv=1"}),
        ("azblob.account.key", {**AZURE, "icestream.s3.endpoint": "http://azurite:10000/lakeaccount"}),
        ("icestream.s3.endpoint", {**GOOGLE, "icestream.s3.endpoint": "ftp://there"}),
        ("gcs.credentials.json", {**GOOGLE, "gcs.credentials.json": '{"type": "external_account"}'}),
        (
            "gcs.credentials.json",
            {
                **GOOGLE,
                "gcs.credentials.json": json.dumps(ACCOUNT),
                "icestream.s3.endpoint": "http://evil.example",
            },
        ),
        (
            "gcs.credentials.path",
            {**GOOGLE, "gcs.credentials.path": "/a", "gcs.credentials.json": json.dumps(ACCOUNT)},
        ),
    ],
)
def test_what_is_refused(key: str, config: dict[str, str]) -> None:
    found = S3SinkPlugin().problems(config)
    assert [problem.key for problem in found] == [key]
    assert "s3cret" not in found[0].message


def test_keys_of_other_stores_have_no_effect() -> None:
    """`aws.…` with gs://, `gcs.…` with az://, and both of the new ones with S3."""
    keys = {
        "aws.access.key.id": "a",
        "aws.secret.access.key": "b",
        "gcs.credentials.json": json.dumps(ACCOUNT),
    }
    assert len(S3SinkPlugin().warnings({**AZURE, **keys})) == 3
    assert len(S3SinkPlugin().warnings({**GOOGLE, **keys})) == 2
    (only,) = S3SinkPlugin().warnings({**FORMAT, **keys, "s3.bucket.name": "lake"})
    assert "'gcs.credentials.json' has no effect" in only


def test_a_key_of_google_is_used_without_addresses_of_its_own() -> None:
    config = {**GOOGLE, "gcs.credentials.json": json.dumps({**ACCOUNT, **FOREIGN})}
    assert S3SinkPlugin().problems(config) == []
    found = asked(config)
    assert json.loads(found["service_account_key"]) == ACCOUNT
    assert found["bucket"] == "lake" and "base_url" not in found
    assert "service_account_key" not in asked(GOOGLE)


def test_a_file_with_a_login_is_one_that_the_worker_allows(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({**ACCOUNT, **FOREIGN}))
    config = {**GOOGLE, "gcs.credentials.path": str(file)}
    (problem,) = S3SinkPlugin().not_allowed(config, {})
    assert problem.key == "gcs.credentials.path" and "icestream.s3.login.files" in problem.message
    assert S3SinkPlugin().not_allowed(config, {"icestream.s3.login.files": str(file)}) == []
    # Tasks get its content, and read no file.
    told = store_settings(config)
    assert "gcs.credentials.path" not in told
    assert json.loads(told["gcs.credentials.json"]) == ACCOUNT
    assert json.loads(asked(config)["service_account_key"]) == ACCOUNT
    with pytest.raises(ConfigError, match="cannot read"):
        store_settings({**config, "gcs.credentials.path": str(tmp_path)})


@pytest.mark.parametrize(
    "login, given",
    [
        ({"azblob.account.key": "a2V5"}, {"access_key": "a2V5", "expires_at": None}),
        ({"azblob.sas.token": "?sv=1&sig=x"}, {"sas_token": "sv=1&sig=x", "expires_at": None}),
    ],
)
def test_logins_of_azure(login: dict[str, str], given: dict[str, Any]) -> None:
    found = asked({**AZURE, **login})
    assert found["credential_provider"]() == given
    assert (found["account_name"], found["container_name"]) == ("lakeaccount", "lake")
    assert "credential_provider" not in asked(AZURE)


def test_the_ledger_keeps_no_login() -> None:
    """`azblob.account.key`, `azblob.sas.token` and `gcs.credentials.json` are not among what it keeps."""
    secrets = {
        "azblob.account.key": "s3cret",
        "azblob.sas.token": "s3cret",
        "gcs.credentials.json": "s3cret",
        "gcs.credentials.path": "s3cret",
    }
    kept = layout_config({**AZURE, **secrets})
    assert "s3cret" not in str(kept)
    assert parsed(kept)["s3.bucket.name"] == "lake"


@pytest.mark.parametrize(
    "config, host",
    [
        (GOOGLE, "storage.googleapis.com"),
        (AZURE, "lakeaccount.blob.core.windows.net"),
        ({**GOOGLE, "icestream.s3.endpoint": "http://emulator:4443"}, "emulator"),
        ({**AZURE, "icestream.s3.endpoint": "http://azurite:10000", "azblob.account.key": "a2V5"}, "azurite"),
        ({**FORMAT, "store.url": "http://minio:9000", "s3.bucket.name": "lake"}, "minio"),
    ],
)
def test_allowed_hosts_hold(config: dict[str, str], host: str) -> None:
    (problem,) = host_problems(config, {"icestream.allowed.hosts": "lake"}, S3SinkPlugin())
    assert f"leads to '{host}'" in problem.message
    assert host_problems(config, {"icestream.allowed.hosts": host}, S3SinkPlugin()) == []


# -- requests, as the client sends them --


@contextmanager
def recorder(answers: list[int]) -> Iterator[tuple[str, list[tuple[str, str, dict[str, str]]]]]:
    """A server that answers as it is told, and remembers what it was asked."""
    heard: list[tuple[str, str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard.append((self.command, self.path, headers))
            self.send_response(answers.pop(0))
            for name, value in (("ETag", '"1"'), ("x-goog-generation", "7"), ("Content-Length", "0")):
                self.send_header(name, value)
            self.end_headers()

        do_PUT = do_GET = do_POST = do_HEAD = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_google_is_asked_on_condition_and_never_elsewhere_with_the_workers_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "the-workers")
    with recorder([200, 412, 200, 412, 404]) as (address, heard):
        store = open_store({**GOOGLE, "icestream.s3.endpoint": address, "s3.part.retries": "0"})
        store.put("topics/_icestream/job/1.json", b"{}")
        with pytest.raises(Exists):
            store.put("topics/_icestream/job/1.json", b"{}")
        upload = store.upload("topics/a b.json", io.BytesIO(b"x"), {"icestream-batch": "b"})
        with pytest.raises(Exists):
            store.complete(upload)
    put, _, staged, copy, _ = heard
    assert put[0] == "PUT" and put[2]["x-goog-if-generation-match"] == "0"
    assert staged[2]["x-goog-meta-icestream-batch"] == "b"
    assert copy[1].endswith("/topics%2Fa%20b%2Ejson")
    assert copy[2]["x-goog-if-generation-match"] == "0" and upload.id in copy[2]["x-goog-copy-source"]
    assert all("the-workers" not in str(one) for one in heard)


def test_azure_elsewhere_gets_no_login_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "the-workers")
    with recorder([201, 403]) as (address, heard):
        config = {**AZURE, "icestream.s3.endpoint": address, "azblob.sas.token": "sv=1&sig=s3cret"}
        store = open_store({**config, "s3.part.retries": "0"})
        store.put("topics/x", b"{}")
        with pytest.raises(SinkUnavailable) as refused:
            store.put("topics/x", b"{}")
    assert heard[0][2]["if-none-match"] == "*" and "sig=s3cret" in heard[0][1]
    assert all("the-workers" not in str(one) for one in heard)
    assert "s3cret" not in str(refused.value)


def test_a_copy_that_the_store_has_not_ended_is_waited_for() -> None:
    """What is staged stays until all of it is copied, and the object is not taken for complete."""
    import obstore.store

    memory = obstore.store.MemoryStore()
    looks: list[float] = []
    store = CloudStore(memory, "gs://lake", "topics/_icestream/staged", sleep=looks.append)
    upload = store.upload("topics/x", io.BytesIO(b"four"), {"icestream-batch": "b"})
    begun = {"icestream-upload": upload.id, "icestream-size": "4", "icestream-batch": "b"}
    obstore.put(memory, "topics/x", b"", attributes=begun)
    with pytest.raises(SinkUnavailable, match="still being copied, 0 of 4 bytes"):
        store.facts("topics/x")
    assert store.is_open(upload)
    # It never ends: the content goes there by way of this machine.
    store.complete(Upload.from_json(upload.to_json()))
    assert looks and store.read("topics/x") == b"four"
    assert not store.is_open(upload)
