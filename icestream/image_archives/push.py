"""An image from an archive into a registry, without a container engine. Called by the operator and by
`icestream image push`.

Everything is checked before anything is sent: sizes, digests, and the sha256 of every layer, unpacked,
against the image's config. Layers that are not packed are packed by gzip without a time stamp: the same
archive always gives the same digests, so a second push finds all blobs there.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, cast

from icestream.api.errors import ImageArchiveError
from icestream.image_archives.archive import (
    GZIP,
    Archive,
    compression,
    decompressed,
    disk_errors,
    opened,
    section,
    sha256_of,
)
from icestream.image_archives.layouts import (
    DOCKER_CONFIG,
    DOCKER_LAYER,
    DOCKER_MANIFEST,
    DockerImage,
    Image,
    OciBlob,
    OciImage,
    distinct,
    listed_images,
    pick,
    read_image,
)
from icestream.image_archives.limits import Limits
from icestream.image_archives.logins import Login
from icestream.image_archives.references import Target
from icestream.image_archives.registry import BlobContent, Registry
from icestream.image_archives.tar_entries import Span

_LEVEL: Final = 6
_GZIP_FRAME: Final = 31
"""zlib's word for a gzip stream; its header has no time and no name."""


@dataclass(frozen=True)
class Pushed:
    reference: str
    """By digest."""
    digest: str
    blobs_sent: int
    blobs_there: int


def push_archive(
    path: Path,
    target: Target,
    login: Login | None = None,
    *,
    source: str | None = None,
    spool: Path | None = None,
    limits: Limits | None = None,
    token_hosts: frozenset[str] = frozenset(),
    told: Callable[[str], None] = lambda _: None,
) -> Pushed:
    """`source` is the image's tag in the archive; `told` hears of each blob and manifest."""
    with opened(path, spool, limits) as archive:
        image = read_image(archive, pick(listed_images(archive), source))
        check_image(archive, image)
        with Registry(target, login, token_hosts=token_hosts) as registry:
            return _Push(archive, registry, spool, told).push(image)


def check_image(archive: Archive, image: Image) -> None:
    """Raises `ImageArchiveError` unless every layer is what manifest and config say."""
    _Checks(archive).check(image)


class _Checks:
    """Each layer is read once, however often it is named."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._left = archive.limits.unpacked_bytes
        self._diff_ids: dict[Span, str] = {}
        self._digests: dict[Span, str] = {}

    def check(self, image: Image) -> None:
        for node in distinct(image):
            if isinstance(node, DockerImage):
                for span, diff_id in zip(node.layers, node.diff_ids, strict=True):
                    self._check_layer(span, diff_id)
            elif isinstance(node, OciImage):
                for layer, diff_id in zip(node.layers, node.diff_ids, strict=True):
                    self._check_blob(layer)
                    self._check_layer(layer.span, diff_id)

    def _check_blob(self, blob: OciBlob) -> None:
        if blob.span not in self._digests:
            digest, _ = sha256_of(decompressed(self._archive.open(blob.span), None), blob.span.size)
            self._digests[blob.span] = f"sha256:{digest}"
        if self._digests[blob.span] != blob.descriptor.digest:
            raise ImageArchiveError(
                f"the blob {blob.descriptor.digest[:19]}… has another checksum: upload the archive again"
            )

    def _check_layer(self, span: Span, diff_id: str) -> None:
        if span not in self._diff_ids:
            magic = compression(self._archive.open(span))
            digest, size = sha256_of(decompressed(self._archive.open(span), magic), self._left)
            self._left -= size
            self._diff_ids[span] = f"sha256:{digest}"
        if self._diff_ids[span] != diff_id:
            raise ImageArchiveError(
                f"a layer of the image has another checksum than its config says ({diff_id[:19]}…): upload"
                " the archive again"
            )


class _Push:
    def __init__(
        self, archive: Archive, registry: Registry, spool: Path | None, told: Callable[[str], None]
    ) -> None:
        self._archive = archive
        self._registry = registry
        self._spool = spool
        self._told = told
        self._there: dict[str, bool] = {}
        """Digest of a blob → whether it had to be sent."""

    def push(self, image: Image) -> Pushed:
        digest = ""
        parts = distinct(image)
        for node in parts:
            tag = self._registry.target.tag if node is parts[-1] else None
            digest = self._push_node(node, tag)
        sent = sum(self._there.values())
        return Pushed(self._registry.target.by_digest(digest), digest, sent, len(self._there) - sent)

    def _push_node(self, node: Image, tag: str | None) -> str:
        if isinstance(node, DockerImage):
            document, media_type = self._docker_manifest(node), DOCKER_MANIFEST
        elif isinstance(node, OciImage):
            for blob in (*node.layers, node.config):
                self._send_span(blob.descriptor.digest, blob.span)
            document, media_type = node.manifest, node.media_type
        else:
            document, media_type = node.document, node.media_type
        digest = f"sha256:{hashlib.sha256(document).hexdigest()}"
        reference = tag or digest
        if self._registry.has_manifest(reference) == digest:
            self._told(f"manifest {digest} is there")
        else:
            self._registry.put_manifest(reference, document, media_type, digest)
            self._told(f"manifest {digest} sent")
        return digest

    def _docker_manifest(self, image: DockerImage) -> bytes:
        packed: dict[str, Mapping[str, str | int]] = {}
        for span, diff_id in zip(image.layers, image.diff_ids, strict=True):
            if diff_id not in packed:
                packed[diff_id] = self._send_layer(span)
        config = f"sha256:{hashlib.sha256(image.config).hexdigest()}"
        self._send(BlobContent(config, len(image.config), lambda: BytesIO(image.config)))
        manifest = {
            "schemaVersion": 2,
            "mediaType": DOCKER_MANIFEST,
            "config": {"mediaType": DOCKER_CONFIG, "size": len(image.config), "digest": config},
            "layers": [packed[diff_id] for diff_id in image.diff_ids],
        }
        return json.dumps(manifest, separators=(",", ":")).encode()

    def _send_layer(self, span: Span) -> Mapping[str, str | int]:
        magic = compression(self._archive.open(span))
        if magic == GZIP:
            digest, size = sha256_of(decompressed(self._archive.open(span), None), span.size)
            self._send_span(f"sha256:{digest}", span)
            return {"mediaType": DOCKER_LAYER, "size": size, "digest": f"sha256:{digest}"}
        with _packed(decompressed(self._archive.open(span), magic), self._spool) as blob:
            self._send(blob)
            return {"mediaType": DOCKER_LAYER, "size": blob.size, "digest": blob.digest}

    def _send_span(self, digest: str, span: Span) -> None:
        self._send(BlobContent(digest, span.size, lambda: self._archive.open(span)))

    def _send(self, blob: BlobContent) -> None:
        if blob.digest not in self._there:
            self._there[blob.digest] = is_sent = self._registry.put_blob(blob)
            self._told(f"blob {blob.digest} {'sent' if is_sent else 'is there'}: {blob.size:,} bytes")


@contextmanager
def _packed(chunks: Iterator[bytes], spool: Path | None) -> Iterator[BlobContent]:
    """Packed into a file: the registry wants to know the digest first."""
    with tempfile.TemporaryFile(dir=spool) as temporary:
        file = cast(BinaryIO, temporary)
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
        digest, size = hashlib.sha256(), 0
        for piece in _packed_pieces(packer, chunks):
            digest.update(piece)
            size += len(piece)
            with disk_errors():
                file.write(piece)
        with disk_errors():
            file.flush()
        yield BlobContent(f"sha256:{digest.hexdigest()}", size, lambda: section(file, Span(0, size)))


def _packed_pieces(packer: zlib._Compress, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()
