"""What an archive may ask of the machine that reads it. An archive is other people's bytes: whoever can write
to the bucket decides what is in it."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3
MIB = 1024**2


@dataclass(frozen=True)
class Limits:
    """The defaults fit any image that people run; each is refused with a sentence that names it."""

    archive_bytes: int = 16 * GIB
    """Of the archive, also after its own compression was undone."""
    unpacked_bytes: int = 32 * GIB
    """Of all layers of an image together, unpacked."""
    entries: int = 50_000
    """Of the tar file."""
    header_bytes: int = MIB
    """Of one extended header: long names and the like."""
    document_bytes: int = 4 * MIB
    """Of a manifest, an index or an image's config; registries take no more either."""
    layers: int = 512
    """Of an image."""
    references: int = 256
    """From one index to manifests."""
    manifests: int = 64
    """That belong to one image for several platforms."""
    depth: int = 4
    """Of indexes within indexes."""
