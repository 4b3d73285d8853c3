"""Archives that are broken, or made to break their reader: one sentence, and nothing sent."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from icestream.api.errors import ImageArchiveError
from icestream.image_archives.archive import opened
from icestream.image_archives.layouts import distinct, listed_images, pick, read_image
from icestream.image_archives.limits import Limits
from icestream.image_archives.push import check_image
from tests.images import made


def checked(path: Path, limits: Limits | None = None, source: str | None = None) -> int:
    """What a push does before it sends anything; how many manifests there are."""
    with opened(path, path.parent, limits) as archive:
        image = read_image(archive, pick(listed_images(archive), source))
        check_image(archive, image)
        return len(distinct(image))


def refused(tmp_path: Path, content: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(ImageArchiveError) as error:
        checked(made.written(tmp_path / "image", content), limits)
    assert "\n" not in str(error.value)
    return str(error.value)


def with_table(change: Callable[[dict[str, object]], None]) -> bytes:
    files = made.docker_files()
    (entry,) = json.loads(files["manifest.json"])
    change(entry)
    return made.tar_of({**files, "manifest.json": json.dumps([entry]).encode()})


def test_good_ones_pass(tmp_path: Path) -> None:
    for number, files in enumerate((made.docker_files(), made.oci_files(), made.nested_oci_files()[0])):
        assert checked(made.written(tmp_path / f"{number}.tar", made.tar_of(files))) in (1, 3)


BROKEN = {
    "empty": (b"", "neither"),
    "no tar": (b"<html>not found</html>" * 100, "no tar file"),
    "cut off": (made.tar_of(made.docker_files())[:3000], "cut off"),
    "cut off within gzip": (gzip.compress(made.tar_of(made.docker_files()))[:-20], "cut off"),
    "gzip with a bit turned": (gzip.compress(b"x" * 9999)[:-5] + b"12345", "broken"),
    "another tar": (made.tar_of({"readme": b"hello"}), "neither"),
    "no images": (made.tar_of({"manifest.json": b"[]"}), "no image"),
    "no json": (made.tar_of({"manifest.json": b"[{"}), "understood"),
    "deep json": (made.tar_of({"manifest.json": b"[" * 200_000}), "understood"),
    "json of another shape": (made.tar_of({"manifest.json": b'[{"Config": 1, "Layers": {}}]'}), "understood"),
    "a layer is missing": (with_table(lambda it: it.update(Layers=["a", "b"])), "lacks 'a'"),
    "too few layers": (with_table(lambda it: it.update(Layers=[])), "checksums of 2"),
    "a config outside": (with_table(lambda it: it.update(Config="../../etc/passwd")), "leads out"),
    "a layer outside": (with_table(lambda it: it.update(Layers=["/etc/passwd", "x"])), "leads out"),
    "an entry outside": (made.tar_of({"../evil": b"x", **made.docker_files()}), "leads out"),
    "a link outside": (made.tar_of(made.docker_files(), {"a/b": "../../etc/passwd"}), "leads out"),
    "a circle of links": (made.tar_of({}, {"manifest.json": "b", "b": "manifest.json"}), "no file"),
    "a config with another content": (
        made.tar_of({it: (b"{}" if it.endswith(".json") else b) for it, b in made.docker_files().items()}),
        "understood",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_is_one_sentence(name: str, tmp_path: Path) -> None:
    content, told = BROKEN[name]
    assert told in refused(tmp_path, content)


def test_two_tables_of_contents_are_refused(tmp_path: Path) -> None:
    """Readers do not agree which one counts: what was looked at may not be what is run."""
    two = made.tar_of({"manifest.json": b"[]"})[:1024] + made.tar_of(made.docker_files())
    assert "more than one" in refused(tmp_path, two)


def test_every_digest_of_an_oci_archive_is_checked(tmp_path: Path) -> None:
    files = made.oci_files()
    for name in [it for it in files if it.startswith("blobs/")]:
        changed = bytearray(files[name])
        changed[len(changed) // 2] ^= 1
        refused(tmp_path, made.tar_of({**files, name: bytes(changed)}))


def test_a_layer_has_the_checksum_of_the_config_when_unpacked(tmp_path: Path) -> None:
    """The blob is what its manifest says, but not what the config was made for."""
    config, packed = made.config_of(made.LAYERS[:1]), gzip.compress(made.LAYERS[1])
    manifest = json.dumps(
        {
            "config": made.descriptor(config, made.OCI_CONFIG),
            "layers": [made.descriptor(packed, f"{made.OCI_LAYER}+gzip")],
        }
    ).encode()
    files = {made.blob_name(it): it for it in (config, packed, manifest)}
    files["index.json"] = made.index_of(made.descriptor(manifest, made.OCI_MANIFEST))
    assert "than its config says" in refused(tmp_path, made.tar_of(files))


def test_bombs_do_not_go_off(tmp_path: Path) -> None:
    small = Limits(archive_bytes=1_000_000, unpacked_bytes=1_000_000)
    assert "when it is unpacked" in refused(tmp_path, gzip.compress(b"\0" * 20_000_000), small)
    bomb = b"\0" * 20_000_000
    files, config = made.docker_files((bomb,)), made.config_of((bomb,))
    table = json.loads(files["manifest.json"])
    files = {f"{made.sha256(config)}.json": config, table[0]["Layers"][0]: gzip.compress(bomb)}
    files["manifest.json"] = json.dumps(table).encode()
    assert "unpacked" in refused(tmp_path, made.tar_of(files), small)


def test_headers_entries_and_documents_have_limits(tmp_path: Path) -> None:
    name = "a" * 5000
    assert "header" in refused(
        tmp_path, made.tar_of({name: b""}, kind=tarfile.PAX_FORMAT), Limits(header_bytes=1000)
    )
    assert "entries" in refused(tmp_path, made.tar_of({f"{n}": b"" for n in range(50)}), Limits(entries=20))
    assert "bytes" in refused(tmp_path, made.tar_of(made.docker_files()), Limits(document_bytes=100))
    many = with_table(lambda it: it.update(Layers=["x"] * 1000))
    assert "1,000 layers" in refused(tmp_path, many)


def folders(count: int) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for number in range(count):
            entry = tarfile.TarInfo(f"{number}")
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
    return target.getvalue()


def test_what_is_no_file_counts_as_well(tmp_path: Path) -> None:
    """Gigabytes of folders, or of headers for one long name, are a small file when gzip has packed them."""
    assert "more than 20 entries" in refused(tmp_path, folders(100), Limits(entries=20))
    long_names = made.tar_of({"a" * 900 + str(n): b"" for n in range(100)}, kind=tarfile.PAX_FORMAT)
    assert "header" in refused(tmp_path, long_names, Limits(header_bytes=1000))


def test_many_records_of_a_header_are_read_by_their_positions(tmp_path: Path) -> None:
    records = {f"k{n}": "v" for n in range(60_000)}
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in made.docker_files().items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.pax_headers = len(content), records if name == "manifest.json" else {}
            tar.addfile(entry, io.BytesIO(content))
    assert checked(made.written(tmp_path / "image.tar", target.getvalue())) == 1


def test_a_layer_that_is_named_often_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """512 names for one blob of gigabytes, in 64 manifests, would be days."""
    path = made.written(tmp_path / "image.tar", made.tar_of(made.oci_files((made.LAYERS[0],) * 100)))
    with opened(path) as archive:
        image = read_image(archive, pick(listed_images(archive), None))
        read, open_span = [], archive.open
        monkeypatch.setattr(archive, "open", lambda span: read.append(span) or open_span(span))
        check_image(archive, image)
    assert len(read) == 3, "its digest, how it is packed, and its content"


def test_many_references_to_one_manifest_are_followed_once(tmp_path: Path) -> None:
    """100 × 100 × 100 of them are a million ways to one image."""
    blobs, manifest = made.oci_parts()
    at = made.descriptor(manifest, made.OCI_MANIFEST)
    for _ in range(3):
        index = made.index_of(*[at] * 100)
        blobs[made.blob_name(index)] = index
        at = made.descriptor(index, made.OCI_INDEX)
    path = made.written(tmp_path / "image.tar", made.tar_of({**blobs, "index.json": made.index_of(at)}))
    assert checked(path) == 4
    deeper = made.index_of(at)
    outer = made.index_of(made.descriptor(deeper, made.OCI_INDEX))
    blobs |= {made.blob_name(deeper): deeper, "index.json": outer}
    assert "nested" in refused(tmp_path, made.tar_of(blobs))


def test_an_image_is_picked_by_its_tag(tmp_path: Path) -> None:
    one, other = (
        made.docker_files(tags=["a/b:1"]),
        made.docker_files((made.LAYERS[0],), ["localhost/c:latest"]),
    )
    table = json.loads(one["manifest.json"]) + json.loads(other["manifest.json"])
    path = made.written(
        tmp_path / "two.tar", made.tar_of({**one, **other, "manifest.json": json.dumps(table).encode()})
    )
    with opened(path) as archive:
        listed = listed_images(archive)
        assert pick(listed, "docker.io/a/b:1") is listed[0]
        assert pick(listed, "c") is listed[1]
        with pytest.raises(ImageArchiveError, match="tags: 'a/b:1', 'localhost/c:latest'"):
            pick(listed, None)
        with pytest.raises(ImageArchiveError, match="no images with the tag"):
            pick(listed, "a/b:2")


def test_other_things_than_images_are_refused(tmp_path: Path) -> None:
    config = b"{}"
    manifest = json.dumps(
        {"config": made.descriptor(config, "application/vnd.cncf.helm.config.v1+json"), "layers": []}
    ).encode()
    files = {made.blob_name(it): it for it in (config, manifest)}
    files["index.json"] = made.index_of(made.descriptor(manifest, made.OCI_MANIFEST))
    assert "no container image" in refused(tmp_path, made.tar_of(files))


def test_any_damage_is_a_sentence_or_does_no_harm(tmp_path: Path) -> None:
    seed = 14
    chance = random.Random(seed)
    whole = [made.tar_of(it) for it in (made.docker_files(), made.oci_files(), made.nested_oci_files()[0])]
    whole.append(gzip.compress(whole[0]))
    path = tmp_path / "damaged"
    for _ in range(600):
        content = bytearray(chance.choice(whole))
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        if chance.random() < 0.3:
            del content[chance.randrange(len(content)) :]
        made.written(path, bytes(content))
        try:
            checked(path)
        except ImageArchiveError:
            continue
