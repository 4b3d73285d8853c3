"""Which images an archive has: the layouts of `docker save` (old, and new with `blobs/`) and of OCI. Used by
`push`.

An archive of today's Docker has both tables of contents. `manifest.json` counts then: it names files that are
there, while `index.json` may name platforms that were left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from icestream.api.errors import ImageArchiveError
from icestream.api.nesting import MOST_LEVELS, NestedTooDeeply, is_too_deep
from icestream.image_archives.archive import Archive
from icestream.image_archives.references import LATEST, is_same_image
from icestream.image_archives.tar_entries import Span, inside, shown

DOCKER_TABLE: Final = "manifest.json"
OCI_TABLE: Final = "index.json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"
OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_MANIFESTS: Final = frozenset({DOCKER_MANIFEST, OCI_MANIFEST})
_INDEXES: Final = frozenset({DOCKER_LIST, OCI_INDEX})
_CONFIGS: Final = frozenset({DOCKER_CONFIG, OCI_CONFIG})
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TAG_KEYS: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_ATTESTATION: Final = "vnd.docker.reference.type"


class _DockerEntry(msgspec.Struct):
    Config: str
    Layers: list[str]
    RepoTags: list[str] | None = None


class Descriptor(msgspec.Struct, frozen=True):
    """What OCI documents say of a blob."""

    digest: str
    size: int
    mediaType: str = ""
    annotations: dict[str, str] | None = None


class _Index(msgspec.Struct):
    manifests: list[Descriptor]
    mediaType: str = ""


class _Manifest(msgspec.Struct):
    config: Descriptor
    layers: list[Descriptor]
    mediaType: str = ""


class _Rootfs(msgspec.Struct):
    diff_ids: list[str]


class _ImageConfig(msgspec.Struct):
    rootfs: _Rootfs


@dataclass(frozen=True)
class DockerImage:
    """Layers as files, from which a manifest is made."""

    config: bytes
    layers: tuple[Span, ...]
    diff_ids: tuple[str, ...]
    """sha256 of each layer, unpacked."""


@dataclass(frozen=True)
class OciBlob:
    descriptor: Descriptor
    span: Span


@dataclass(frozen=True)
class OciImage:
    """One platform's; its manifest is pushed as it is."""

    manifest: bytes
    media_type: str
    digest: str
    config: OciBlob
    layers: tuple[OciBlob, ...]
    diff_ids: tuple[str, ...]


@dataclass(frozen=True)
class OciIndex:
    """An image for several platforms; its parts are pushed before it."""

    document: bytes
    media_type: str
    digest: str
    parts: tuple[OciImage | OciIndex, ...]


Image = DockerImage | OciImage | OciIndex


@dataclass(frozen=True)
class Listed:
    """An image in the table of contents."""

    tags: tuple[str, ...]
    entry: _DockerEntry | Descriptor


def listed_images(archive: Archive) -> Sequence[Listed]:
    if archive.has(DOCKER_TABLE):
        entries = _decoded(archive.document(DOCKER_TABLE), list[_DockerEntry], DOCKER_TABLE)
        listed = [Listed(tuple(entry.RepoTags or ()), entry) for entry in entries]
    elif archive.has(OCI_TABLE):
        index = _decoded(archive.document(OCI_TABLE), _Index, OCI_TABLE)
        listed = [Listed(_tags(one), one) for one in index.manifests if not _is_attestation(one)]
    else:
        raise ImageArchiveError(
            f"the archive has neither {DOCKER_TABLE} nor {OCI_TABLE}: it is none of `docker save` or OCI"
        )
    if len(listed) > archive.limits.references:
        raise ImageArchiveError(
            f"the archive lists {len(listed):,} images, more than {archive.limits.references}"
        )
    if not listed:
        raise ImageArchiveError("the archive lists no image: make it anew")
    return listed


def read_image(archive: Archive, listed: Listed) -> Image:
    if isinstance(listed.entry, _DockerEntry):
        return _docker_image(archive, listed.entry)
    return _OciReader(archive).node(listed.entry, 0)


def _docker_image(archive: Archive, entry: _DockerEntry) -> DockerImage:
    if len(entry.Layers) > archive.limits.layers:
        raise ImageArchiveError(
            f"the image has {len(entry.Layers):,} layers, more than {archive.limits.layers}"
        )
    config = archive.document(inside(entry.Config))
    named = re.search(r"(?:^|/)([0-9a-f]{64})(?:\.json)?$", entry.Config)
    if named and hashlib.sha256(config).hexdigest() != named[1]:
        raise ImageArchiveError(
            f"the config {named[1][:12]}… in the archive has another checksum: upload it again"
        )
    diff_ids = _diff_ids(config, len(entry.Layers))
    return DockerImage(config, tuple(archive.span(inside(name)) for name in entry.Layers), diff_ids)


def _diff_ids(config: bytes, layers: int) -> tuple[str, ...]:
    diff_ids = _decoded(config, _ImageConfig, "the image's config").rootfs.diff_ids
    if len(diff_ids) != layers:
        raise ImageArchiveError(
            f"the image has {layers} layers, but its config has checksums of {len(diff_ids)}: make it anew"
        )
    return tuple(_digest(one) for one in diff_ids)


class _OciReader:
    """Reads each manifest once, however often it is referred to."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._read: dict[str, OciImage | OciIndex] = {}

    def node(self, at: Descriptor, depth: int) -> OciImage | OciIndex:
        known = self._read.get(at.digest)
        if known is None:
            if len(self._read) >= self._archive.limits.manifests:
                raise ImageArchiveError(
                    f"the image has more than {self._archive.limits.manifests} manifests: not taken"
                )
            known = self._read[at.digest] = self._new_node(at, depth)
        return known

    def _new_node(self, at: Descriptor, depth: int) -> OciImage | OciIndex:
        if depth >= self._archive.limits.depth:
            raise ImageArchiveError(f"indexes of the archive are nested {depth} deep: not taken")
        document = self._document(at)
        name = f"manifest {at.digest[:19]}…"
        media_type = at.mediaType or _decoded(document, _Typed, name).mediaType
        if media_type in _INDEXES:
            return self._index(at, document, media_type, depth)
        if media_type not in _MANIFESTS:
            raise ImageArchiveError(f"{name} is of the kind '{shown(media_type)}': no container image")
        manifest = _decoded(document, _Manifest, name)
        if manifest.mediaType and manifest.mediaType != media_type:
            raise ImageArchiveError(f"{name} is of another kind than the index says: not taken")
        if manifest.config.mediaType not in _CONFIGS:
            raise ImageArchiveError(
                f"{name} has a config '{shown(manifest.config.mediaType)}': no container image"
            )
        if len(manifest.layers) > self._archive.limits.layers:
            raise ImageArchiveError(f"the image has {len(manifest.layers):,} layers: not taken")
        config = self._document(manifest.config)
        return OciImage(
            document,
            media_type,
            at.digest,
            self._blob(manifest.config),
            tuple(self._blob(layer) for layer in manifest.layers),
            _diff_ids(config, len(manifest.layers)),
        )

    def _index(self, at: Descriptor, document: bytes, media_type: str, depth: int) -> OciImage | OciIndex:
        entries = _decoded(document, _Index, f"index {at.digest[:19]}…").manifests
        if len(entries) > self._archive.limits.references:
            raise ImageArchiveError(f"an index of the archive lists {len(entries):,} manifests: not taken")
        there = [one for one in entries if self._archive.has(_path(one.digest))]
        if entries and len(there) == len(entries):
            parts = tuple(self.node(one, depth + 1) for one in entries)
            return OciIndex(document, media_type, at.digest, parts)
        # `docker save` of one platform leaves the others out, and what was attested of this one.
        images = [one for one in there if not _is_attestation(one)]
        if len(images) == 1:
            return self.node(images[0], depth + 1)
        raise ImageArchiveError(
            f"an index of the archive lists {len(entries)} manifests, of which it has {len(images)} images:"
            " make the archive of one platform, or of all"
        )

    def _document(self, at: Descriptor) -> bytes:
        document = self._archive.document(_path(at.digest))
        if f"sha256:{hashlib.sha256(document).hexdigest()}" != at.digest:
            raise ImageArchiveError(
                f"the blob {at.digest[:19]}… in the archive has another checksum: upload it again"
            )
        return document

    def _blob(self, at: Descriptor) -> OciBlob:
        span = self._archive.span(_path(at.digest))
        if span.size != at.size:
            raise ImageArchiveError(
                f"the blob {at.digest[:19]}… has {span.size:,} bytes, but {at.size:,} by its manifest"
            )
        return OciBlob(at, span)


class _Typed(msgspec.Struct):
    mediaType: str = ""


def _path(digest: str) -> str:
    return "blobs/sha256/" + _digest(digest).removeprefix("sha256:")


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise ImageArchiveError(f"'{shown(text)}' in the archive is no sha256 digest: not taken")
    return text


def _tags(one: Descriptor) -> tuple[str, ...]:
    annotations = one.annotations or {}
    return tuple(annotations[key] for key in _TAG_KEYS if key in annotations)


def _is_attestation(one: Descriptor) -> bool:
    return _ATTESTATION in (one.annotations or {})


_T = TypeVar("_T")


def _decoded(document: bytes, kind: type[_T], name: str) -> _T:
    try:
        if is_too_deep(document):
            raise NestedTooDeeply(MOST_LEVELS)
        return msgspec.json.decode(document, type=kind)
    except ValueError as error:  # msgspec's errors are ValueErrors
        raise ImageArchiveError(
            f"{name} in the archive cannot be understood ({shown(str(error))})"
        ) from error


def distinct(image: Image) -> Sequence[Image]:
    """An image and its parts, each once and parts first, however often they are referred to."""
    found: dict[str, Image] = {}

    def visit(node: Image) -> None:
        if isinstance(node, DockerImage):
            found[""] = node
        elif node.digest not in found:
            if isinstance(node, OciIndex):
                for part in node.parts:
                    visit(part)
            found[node.digest] = node

    visit(image)
    return list(found.values())


def pick(listed: Sequence[Listed], source: str | None) -> Listed:
    """The image of this tag; without a tag, the only one."""
    tags = ", ".join(f"'{shown(tag)}'" for one in listed[:10] for tag in one.tags[:10]) or "none"
    if source is None:
        if len(listed) > 1:
            raise ImageArchiveError(
                f"the archive has {len(listed)} images (tags: {tags}): say which, by its tag"
            )
        return listed[0]
    found = [one for one in listed if any(is_same_image(tag, source) for tag in one.tags)]
    if not found:
        # OCI layouts may have the bare tag.
        bare = source.rpartition("/")[2].partition(":")[2] or LATEST
        found = [one for one in listed if bare in one.tags]
    if not found and len(listed) == 1 and not listed[0].tags:
        return listed[0]
    if len(found) != 1:
        raise ImageArchiveError(
            f"the archive has {len(found) or 'no'} images with the tag '{shown(source)}' (tags: {tags})"
        )
    return found[0]
