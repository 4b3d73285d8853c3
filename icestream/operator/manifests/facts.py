"""What the objects of a cluster depend on beside its resource. The loop finds it out; `render` takes the
defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icestream import __version__
from icestream.operator.resources.cluster_spec import Reference

Manifest = dict[str, Any]
DEFAULT_IMAGE: Final = f"icestream/icestream:{__version__}"


@dataclass(frozen=True)
class Facts:
    images: Mapping[str, str] = field(default_factory=dict)
    """Role (`worker`, `coordinator`) → the reference that was pushed, by digest."""
    default_image: str = DEFAULT_IMAGE
    """For clusters that name none: the operator's own."""
    hashes: Mapping[Reference, str] = field(default_factory=dict)
    """Of the content of `ClusterSpec.references`; one that is missing is left out."""
    secret_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Secret → the names of its keys, never their values: for patterns of trusted certificates."""
    replicas: int | None = None
    """How many workers our own scaling wants; None: as many as the resource says."""
    is_autoscaled: bool = False
    """An autoscaler of somebody else has the Deployment: `replicas` is left out of it."""
    has_keda: bool = False
    has_pod_monitors: bool = False
    restarted: str = ""
    """A mark that rolls the pods when it changes; the loop keeps it as long as nobody asks again."""
