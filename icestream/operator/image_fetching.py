"""Brings the images of a cluster from S3 to its registry, as part of the cluster's turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icestream.operator.api_server import ApiServer
from icestream.operator.references import Contents
from icestream.operator.resources.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from icestream.operator.images import ImagesOutcome


class ImageFetching:
    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def turn(
        self, spec: ClusterSpec, remembered: Mapping[str, Any], contents: Contents, is_forced: bool
    ) -> ImagesOutcome | None:
        """None: the cluster has no images in S3."""
        if spec.archives is None:
            return None
        raise NotImplementedError
