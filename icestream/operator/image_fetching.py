"""Brings the images of a cluster from S3 to its registry, as part of the cluster's turn."""

from __future__ import annotations

import base64
import binascii
import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestream.operator.api_server import ApiServer
from icestream.operator.keys import Key
from icestream.operator.kinds import SECRET
from icestream.operator.references import Contents
from icestream.operator.resources.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from icestream.operator.images import ImagesOutcome


class ImageFetching:
    def __init__(self, server: ApiServer, spool: Path | None = None) -> None:
        self._server = server
        self._spool = spool or Path(tempfile.gettempdir()) / "icestream-images"

    def turn(
        self, spec: ClusterSpec, remembered: Mapping[str, Any], contents: Contents, is_forced: bool
    ) -> ImagesOutcome | None:
        """None: the cluster has no images in S3. `is_forced`: as if nothing were remembered."""
        from icestream.operator.image_fetch import S3Images
        from icestream.operator.images import ImageSecrets, images_turn

        wanted = spec.archives
        if wanted is None:
            return None
        secrets = ImageSecrets(
            store=self._secret(spec.namespace, wanted.store.credentials_secret, contents),
            registry=self._secret(spec.namespace, wanted.registry.secret, contents),
        )
        # By uid as well: a cluster never goes on with the half of a download of its namesake.
        folder = self._folder(Key(spec.kind, spec.namespace, spec.name)) / _hashed(spec.uid)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        source = S3Images(wanted, secrets, folder, of_all=self._spool)
        return images_turn(wanted, {} if is_forced else remembered, datetime.now(UTC), source)

    def forget(self, key: Key) -> None:
        """The cluster is gone: so is what was fetched for it, or its archives would fill the spool."""
        shutil.rmtree(self._folder(key), ignore_errors=True)

    def _folder(self, key: Key) -> Path:
        return self._spool / _hashed(str(key))

    def _secret(self, namespace: str, name: str | None, contents: Contents) -> Mapping[str, bytes] | None:
        if not name:
            return None
        data = contents.data.get(name)
        if data is None:
            found = self._server.get(SECRET, namespace, name)
            # One that is missing is an empty one: the store and the registry say what they miss.
            data = {} if found is None else found.get("data") or {}
        return {key: _decoded(str(value)) for key, value in data.items()}


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
