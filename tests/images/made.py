"""Archives of images for tests, written byte by byte: what engines write, and what an attacker would."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
TAG = "icestream/worker:dev"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def layer(**files: str) -> bytes:
    """A tar file, as a layer is one."""
    return tar_of({f"etc/{name}": text.encode() for name, text in files.items()})


def tar_of(
    files: Mapping[str, bytes], links: Mapping[str, str] | None = None, kind: int = tarfile.USTAR_FORMAT
) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=kind) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for name, aim in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, aim
            tar.addfile(entry)
    return target.getvalue()


LAYERS = (layer(one="the first"), layer(two="the second" * 1000))


def config_of(layers: Sequence[bytes]) -> bytes:
    """Of an image whose layers, unpacked, are these."""
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{sha256(one)}" for one in layers]}
    return json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()


def docker_files(layers: Sequence[bytes] = LAYERS, tags: Sequence[str] | None = (TAG,)) -> dict[str, bytes]:
    """Of `docker save`, until version 24: the table of contents comes last."""
    config = config_of(layers)
    names = [f"{sha256(one)}/layer.tar" for one in layers]
    table = [{"Config": f"{sha256(config)}.json", "RepoTags": tags and list(tags), "Layers": names}]
    return {
        **dict(zip(names, layers, strict=True)),
        f"{sha256(config)}.json": config,
        "manifest.json": json.dumps(table).encode(),
    }


def blob_name(content: bytes) -> str:
    return f"blobs/sha256/{sha256(content)}"


def descriptor(content: bytes, media_type: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256(content)}", "size": len(content), **more}


def oci_parts(layers: Sequence[bytes] = LAYERS) -> tuple[dict[str, bytes], bytes]:
    """The blobs of one image, packed by gzip, and its manifest."""
    config = config_of(layers)
    packed = [gzip.compress(one, mtime=7) for one in layers]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": descriptor(config, OCI_CONFIG),
            "layers": [descriptor(one, f"{OCI_LAYER}+gzip") for one in packed],
        }
    ).encode()
    return {blob_name(one): one for one in (config, *packed, manifest)}, manifest


def index_of(*entries: Mapping[str, Any]) -> bytes:
    return json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}).encode()


def oci_files(layers: Sequence[bytes] = LAYERS, tag: str = "dev") -> dict[str, bytes]:
    blobs, manifest = oci_parts(layers)
    named = {"org.opencontainers.image.ref.name": tag}
    return {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": index_of(descriptor(manifest, OCI_MANIFEST, annotations=named)),
        **blobs,
    }


def nested_oci_files() -> tuple[dict[str, bytes], bytes]:
    """Two platforms behind an index of their own; and that index."""
    first, one = oci_parts()
    second, other = oci_parts((layer(arm="64"),))
    inner = index_of(
        descriptor(one, OCI_MANIFEST, platform={"os": "linux", "architecture": "amd64"}),
        descriptor(other, OCI_MANIFEST, platform={"os": "linux", "architecture": "arm64"}),
    )
    named = {"io.containerd.image.name": f"docker.io/{TAG}"}
    outer = index_of(descriptor(inner, OCI_INDEX, annotations=named))
    return {"index.json": outer, **first, **second, blob_name(inner): inner}, inner


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
