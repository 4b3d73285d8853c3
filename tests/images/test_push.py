"""Archives of images into real registries, with skopeo and buildah as second opinion."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyarrow as pa
import pytest

from icestream.api.errors import ImageArchiveError, RegistryRefused, RegistryUnavailable
from icestream.embedded import ports
from icestream.image_archives.http_answers import limited_body
from icestream.image_archives.layouts import DOCKER_MANIFEST
from icestream.image_archives.logins import Login
from icestream.image_archives.push import Pushed, push_archive
from icestream.image_archives.references import Target, target_in
from icestream.image_archives.registry import BlobContent, Registry
from tests.images import made
from tests.images.registries import (
    PASSWORD,
    USER,
    docker_config,
    password_file,
    running_registry,
    scripted,
)
from tests.kit.programs import require_program


@pytest.fixture(scope="module")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


def target_at(host: str, name: str = "icestream/worker:1.0") -> Target:
    return target_in(host, name, is_insecure=True)


def pulled(host: str, repository: str, reference: str) -> dict[str, Any]:
    """The manifest, as the registry has it."""
    accept = ", ".join((made.OCI_INDEX, made.OCI_MANIFEST, DOCKER_MANIFEST))
    url = f"http://{host}/v2/{repository}/manifests/{reference}"
    answer = httpx.get(url, headers={"Accept": accept}, timeout=60)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def layers_of(host: str, repository: str, manifest: dict[str, Any]) -> list[bytes]:
    """Unpacked."""
    blobs = [
        httpx.get(f"http://{host}/v2/{repository}/blobs/{one['digest']}", timeout=60).content
        for one in manifest["layers"]
    ]
    return [gzip.decompress(blob) for blob in blobs]


DOCKER_KINDS = {
    "ustar": made.tar_of(made.docker_files()),
    "gnu": made.tar_of(made.docker_files(), kind=tarfile.GNU_FORMAT),
    "pax": made.tar_of(made.docker_files(), kind=tarfile.PAX_FORMAT),
    "without tags": made.tar_of(made.docker_files(tags=None)),
    "gzipped": gzip.compress(made.tar_of(made.docker_files())),
    "dots before names": made.tar_of({f"./{name}": it for name, it in made.docker_files().items()}),
}


@pytest.mark.parametrize("kind", DOCKER_KINDS)
def test_an_archive_of_docker_is_pushed_whole(kind: str, open_registry: str, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image", DOCKER_KINDS[kind])
    repository = f"docker/{kind.replace(' ', '-')}"
    pushed = push_archive(archive, target_at(open_registry, f"{repository}:1.0"), source=made.TAG)
    manifest = pulled(open_registry, repository, pushed.digest)
    assert manifest == pulled(open_registry, repository, "1.0")
    assert layers_of(open_registry, repository, manifest) == list(made.LAYERS)
    assert pushed.reference == f"{open_registry}/{repository}@{pushed.digest}"


def test_all_forms_of_one_image_have_one_digest(open_registry: str, tmp_path: Path) -> None:
    digests = {
        push_archive(made.written(tmp_path / "image", content), target_at(open_registry, "same")).digest
        for content in DOCKER_KINDS.values()
    }
    assert len(digests) == 1


def test_a_second_push_sends_nothing(open_registry: str, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", made.tar_of(made.docker_files()))
    first = push_archive(archive, target_at(open_registry, "twice"))
    heard: list[str] = []
    second = push_archive(archive, target_at(open_registry, "twice"), told=heard.append)
    assert (first.blobs_sent, first.blobs_there) == (3, 0)
    assert second == Pushed(first.reference, first.digest, 0, 3)
    assert all("is there" in line for line in heard)


def test_layers_that_are_links_are_found(open_registry: str, tmp_path: Path) -> None:
    """As Docker and Podman write a layer that occurs twice."""
    one = made.LAYERS[0]
    files = made.docker_files((one, one))
    name = f"{made.sha256(one)}/layer.tar"
    table = json.loads(files["manifest.json"])
    table[0]["Layers"] = ["twin/layer.tar", name]
    files["manifest.json"] = json.dumps(table).encode()
    archive = made.written(tmp_path / "image.tar", made.tar_of(files, {"twin/layer.tar": f"../{name}"}))
    pushed = push_archive(archive, target_at(open_registry, "links"))
    assert layers_of(open_registry, "links", pulled(open_registry, "links", pushed.digest)) == [one, one]


def test_a_docker_archive_with_blobs_is_taken(open_registry: str, tmp_path: Path) -> None:
    """Of Docker since 25: both tables of contents, packed layers, and an index with platforms that are not
    there."""
    config, packed = made.config_of(made.LAYERS), [gzip.compress(one) for one in made.LAYERS]
    table = [
        {
            "Config": made.blob_name(config),
            "RepoTags": [made.TAG],
            "Layers": [made.blob_name(it) for it in packed],
        }
    ]
    lost = made.descriptor(b"left out", made.OCI_MANIFEST)
    files = {made.blob_name(it): it for it in (config, *packed)}
    files |= {"manifest.json": json.dumps(table).encode(), "index.json": made.index_of(lost)}
    archive = made.written(tmp_path / "image.tar", made.tar_of(files))
    pushed = push_archive(archive, target_at(open_registry, "blobs"), source=made.TAG)
    manifest = pulled(open_registry, "blobs", pushed.digest)
    assert layers_of(open_registry, "blobs", manifest) == list(made.LAYERS)
    assert [one["digest"] for one in manifest["layers"]] == [f"sha256:{made.sha256(it)}" for it in packed]


@pytest.mark.parametrize("source", [None, "dev", made.TAG])
def test_an_oci_archive_keeps_its_digest(source: str | None, open_registry: str, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", made.tar_of(made.oci_files()))
    pushed = push_archive(archive, target_at(open_registry, "oci"), source=source)
    _, manifest = made.oci_parts()
    assert pushed.digest == f"sha256:{made.sha256(manifest)}"
    assert layers_of(open_registry, "oci", pulled(open_registry, "oci", pushed.digest)) == list(made.LAYERS)


def test_all_platforms_of_an_index_are_pushed(open_registry: str, tmp_path: Path) -> None:
    files, inner = made.nested_oci_files()
    archive = made.written(tmp_path / "image.tar", made.tar_of(files))
    pushed = push_archive(archive, target_at(open_registry, "platforms:all"), source=made.TAG)
    assert pushed.digest == f"sha256:{made.sha256(inner)}"
    index = pulled(open_registry, "platforms", "all")
    for one in index["manifests"]:
        assert layers_of(open_registry, "platforms", pulled(open_registry, "platforms", one["digest"]))


def test_the_only_platform_that_an_index_has_is_pushed(open_registry: str, tmp_path: Path) -> None:
    blobs, manifest = made.oci_parts()
    missing = made.descriptor(b"another platform", made.OCI_MANIFEST)
    inner = made.index_of(missing, made.descriptor(manifest, made.OCI_MANIFEST))
    files = {
        "index.json": made.index_of(made.descriptor(inner, made.OCI_INDEX)),
        made.blob_name(inner): inner,
    }
    archive = made.written(tmp_path / "image.tar", made.tar_of({**files, **blobs}))
    pushed = push_archive(archive, target_at(open_registry, "one-platform"))
    assert pushed.digest == f"sha256:{made.sha256(manifest)}"


def test_layers_packed_by_zstd_are_checked_and_pushed(open_registry: str, tmp_path: Path) -> None:
    config, layer = made.config_of(made.LAYERS[:1]), made.LAYERS[0]
    packed = pa.compress(layer, "zstd", asbytes=True)
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "config": made.descriptor(config, made.OCI_CONFIG),
            "layers": [made.descriptor(packed, f"{made.OCI_LAYER}+zstd")],
        }
    ).encode()
    files = {made.blob_name(it): it for it in (config, packed, manifest)}
    files["index.json"] = made.index_of(made.descriptor(manifest, made.OCI_MANIFEST))
    archive = made.written(tmp_path / "image.tar", made.tar_of(files))
    pushed = push_archive(archive, target_at(open_registry, "zstd"))
    assert pushed.digest == f"sha256:{made.sha256(manifest)}"


def test_large_blobs_are_sent_in_chunks(open_registry: str) -> None:
    content = os.urandom(2_500_000)
    blob = BlobContent(f"sha256:{made.sha256(content)}", len(content), lambda: io.BytesIO(content))
    with Registry(target_at(open_registry, "chunks"), chunk_bytes=1_000_000) as registry:
        assert registry.put_blob(blob)
        assert not registry.put_blob(blob)
    got = httpx.get(f"http://{open_registry}/v2/chunks/blobs/{blob.digest}", timeout=60)
    assert got.content == content


def test_skopeo_reads_what_was_pushed(open_registry: str, tmp_path: Path) -> None:
    skopeo = require_program("skopeo")
    archive = made.written(tmp_path / "image.tar.gz", DOCKER_KINDS["gzipped"])
    pushed = push_archive(archive, target_at(open_registry, "seen:1"))
    told = subprocess.run(
        [skopeo, "inspect", "--tls-verify=false", f"docker://{open_registry}/seen:1"],
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert json.loads(told.stdout)["Digest"] == pushed.digest
    copied = tmp_path / "copied.tar"
    subprocess.run(
        [
            skopeo,
            "--insecure-policy",
            "copy",
            "--src-tls-verify=false",
            f"docker://{pushed.reference}",
            f"docker-archive:{copied}:{made.TAG}",
        ],
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert push_archive(copied, target_at(open_registry, "back"), source=made.TAG).digest == pushed.digest


@pytest.mark.parametrize("kind", ["docker-archive", "oci-archive"])
def test_what_skopeo_writes_is_taken(kind: str, open_registry: str, tmp_path: Path) -> None:
    skopeo = require_program("skopeo")
    first = push_archive(
        made.written(tmp_path / "one.tar", DOCKER_KINDS["pax"]), target_at(open_registry, "origin")
    )
    file = tmp_path / "written.tar"
    subprocess.run(
        [
            skopeo,
            "--insecure-policy",
            "copy",
            "--src-tls-verify=false",
            f"docker://{first.reference}",
            f"{kind}:{file}:{made.TAG}",
        ],
        capture_output=True,
        check=True,
        timeout=120,
    )
    repository = f"from-{kind}"
    pushed = push_archive(file, target_at(open_registry, repository), source=made.TAG)
    assert layers_of(open_registry, repository, pulled(open_registry, repository, pushed.digest)) == list(
        made.LAYERS
    )


def test_what_buildah_writes_is_taken(open_registry: str, tmp_path: Path) -> None:
    buildah = require_program("buildah")
    policy = made.written(tmp_path / "policy.json", b'{"default": [{"type": "insecureAcceptAnything"}]}')
    common = ["--storage-driver", "vfs", "--root", str(tmp_path / "root"), "--runroot", str(tmp_path / "run")]

    def run(*arguments: str) -> str:
        done = subprocess.run([buildah, *common, *arguments], capture_output=True, text=True, timeout=300)
        if done.returncode and "permitted" in done.stderr:
            pytest.skip(f"buildah may not work here: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    container = run("from", "scratch")
    run("copy", container, str(policy), "/etc/some.json")
    file = tmp_path / "built.tar"
    run("commit", "--signature-policy", str(policy), container, f"docker-archive:{file}:{made.TAG}")
    pushed = push_archive(file, target_at(open_registry, "built"), source=made.TAG)
    (unpacked,) = layers_of(open_registry, "built", pulled(open_registry, "built", pushed.digest))
    assert b"insecureAcceptAnything" in unpacked


# -- logins --


def test_a_registry_behind_a_password_takes_the_right_one_only(tmp_path: Path) -> None:
    file = password_file(tmp_path / "auth")
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with running_registry(tmp_path / "registry", {"htpasswd": {"realm": "here", "path": str(file)}}) as host:
        target = target_at(host)
        assert push_archive(archive, target, Login(USER, PASSWORD)).blobs_sent == 3
        with pytest.raises(RegistryRefused, match="does not let this login push") as refused:
            push_archive(archive, target, Login(USER, "guessed-wrong"))
        assert "guessed-wrong" not in str(refused.value)
        with pytest.raises(RegistryRefused, match="there is none for it"):
            push_archive(archive, target)


TOKEN = "a.token-of~the+test/1="


def guarded(realm: str, scope: str = "repository:other/secret:*") -> Any:
    """A registry that lets nobody in without TOKEN, and has everything for whoever has it."""

    def answer(verb: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if headers.get("authorization") == f"Bearer {TOKEN}":
            if "manifests" in path and verb == "HEAD":
                return 404, {}, b""
            return (201 if verb == "PUT" else 200), {}, b""
        challenge = f'Bearer realm="{realm}",service="the registry",scope="{scope}"'
        return 401, {"WWW-Authenticate": challenge}, b"{}"

    return answer


def test_a_token_is_asked_for_the_repository_that_is_pushed_to(tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])

    def tokens(verb: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps({"token": TOKEN}).encode()

    with scripted(tokens) as server, scripted(guarded(f"http://{server.host}/token")) as registry:
        push_archive(archive, target_at(registry.host), Login(USER, PASSWORD))
        (verb, path, headers), *more = server.asked
    assert not more
    assert parse_qs(urlsplit(path).query) == {
        "scope": ["repository:icestream/worker:pull,push"],
        "service": ["the registry"],
    }
    assert (verb, headers["authorization"]) == ("GET", httpx.BasicAuth(USER, PASSWORD)._auth_header)
    assert not any("Basic" in headers.get("authorization", "") for _, _, headers in registry.asked)


@pytest.mark.parametrize(
    "realm",
    [
        "http://localhost:{port}/token",
        "http://user:secret@127.0.0.1:{port}/token",
        "ftp://127.0.0.1/token",
        "https://evil.example/token",
        "https://127.0.0.1.evil.example/token",
        "https://[broken/token",
        "",
    ],
)
def test_no_password_goes_to_a_token_server_that_the_registry_has_no_say_over(
    realm: str, tmp_path: Path
) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with (
        scripted(lambda *_: (200, {}, b"{}")) as thief,
        scripted(guarded(realm.format(port=thief.port))) as registry,
    ):
        with pytest.raises(RegistryRefused) as refused:
            push_archive(archive, target_at(registry.host), Login(USER, PASSWORD))
        assert not thief.asked
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "body", [b"no json", b"[]", b"{}", b'{"token": "two\\r\\nlines"}', b'{"token": 5}', b"[" * 100_000]
)
def test_an_answer_without_a_token_is_refused(body: bytes, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with (
        scripted(lambda *_: (200, {}, body)) as server,
        scripted(guarded(f"http://{server.host}/token")) as registry,
        pytest.raises(RegistryRefused, match="token server"),
    ):
        push_archive(archive, target_at(registry.host), Login(USER, PASSWORD))


@pytest.mark.parametrize("realm", ["http://127.0.0.1/a\x7fb", "http://127.0.0.1\t/x"])
def test_a_login_at_an_address_that_is_none_is_a_sentence(realm: str, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with scripted(guarded(realm)) as registry, pytest.raises((RegistryRefused, RegistryUnavailable)) as told:
        push_archive(archive, target_at(registry.host), Login(USER, PASSWORD))
    assert PASSWORD not in str(told.value)


@pytest.mark.parametrize("location", ["/" + "a" * 66_000, "/a\x7fb"])
def test_an_upload_at_an_address_that_is_none_is_a_sentence(location: str) -> None:
    def answer(verb: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return (404, {}, b"") if verb == "HEAD" else (202, {"Location": location}, b"")

    blob = BlobContent(f"sha256:{made.sha256(b'x')}", 1, lambda: io.BytesIO(b"x"))
    with (
        scripted(answer) as server,
        Registry(target_at(server.host), sleep=lambda _: None) as registry,
        pytest.raises(RegistryUnavailable, match="InvalidURL"),
    ):
        registry.put_blob(blob)


def test_an_answer_that_comes_byte_by_byte_has_an_end() -> None:
    ticks = itertools.count(step=25)
    answer = httpx.Response(200, content=(b" " for _ in range(1000)))
    with pytest.raises(RegistryUnavailable, match="no end after 60 s"):
        limited_body(answer, lambda: float(next(ticks)))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_carries_anything_away(status: int, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with scripted(lambda *_: (200, {}, b"")) as thief:
        away = {"Location": f"http://localhost:{thief.port}/"}
        with (
            scripted(lambda *_: (status, away, b"")) as registry,
            pytest.raises(RegistryRefused, match="redirect"),
        ):
            push_archive(archive, target_at(registry.host), Login(USER, PASSWORD))
        assert not thief.asked


@pytest.mark.parametrize(
    "location", ["http://localhost:{port}/up", "//localhost:{port}/up", "http://[x/", ""]
)
def test_an_upload_that_is_sent_elsewhere_is_refused(location: str, tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with scripted(lambda *_: (200, {}, b"")) as thief:
        away = {"Location": location.format(port=thief.port)}

        def answer(verb: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
            return (404, {}, b"") if verb == "HEAD" else (202, away, b"")

        with scripted(answer) as registry, pytest.raises(RegistryRefused, match="another host"):
            push_archive(archive, target_at(registry.host))
        assert not thief.asked


def test_words_of_a_server_are_not_repeated(tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    body = json.dumps({"errors": [{"code": "DENIED", "message": "private words"}]}).encode()
    with (
        scripted(lambda verb, *_: (404 if verb == "HEAD" else 400, {}, body)) as registry,
        pytest.raises(RegistryRefused, match="DENIED") as refused,
    ):
        push_archive(archive, target_at(registry.host))
    assert "private words" not in str(refused.value)


def test_a_registry_that_is_away_or_busy_is_worth_another_try(tmp_path: Path) -> None:
    archive = made.written(tmp_path / "image.tar", DOCKER_KINDS["ustar"])
    with pytest.raises(RegistryUnavailable):
        push_archive(archive, target_at(f"{ports.HOST}:{ports.free_port()}"))
    with scripted(lambda *_: (503, {}, b"")) as registry, pytest.raises(RegistryUnavailable, match="503"):
        push_archive(archive, target_at(registry.host))


def test_nothing_is_sent_of_an_archive_that_is_broken_at_its_end(tmp_path: Path) -> None:
    files = made.docker_files()
    last = [name for name in files if name.endswith("layer.tar")][-1]
    files[last] = files[last][:-1] + b"!"
    archive = made.written(tmp_path / "image.tar", made.tar_of(files))
    with scripted(lambda *_: (404, {}, b"")) as registry:
        with pytest.raises(ImageArchiveError, match="another checksum"):
            push_archive(archive, target_at(registry.host))
        assert not registry.asked


def test_the_secrets_login_is_for_its_registry_only() -> None:
    from icestream.image_archives.logins import login_for

    config = docker_config("https://registry.example.com/v1/")
    assert login_for(config, "registry.example.com", "a") == Login(USER, PASSWORD)
    for other in ("example.com", "registry.example.com:5000", "registry.example.com.evil.example"):
        assert login_for(config, other, "a") is None
    assert PASSWORD not in repr(login_for(config, "registry.example.com", "a"))
