"""Who says how many replicas a Deployment has: the resource, or an autoscaler. Pure; used when children are
written.

By server-side apply, a field that we leave out is ours no longer. Was it ours alone, the server sets it back
to 1: so it is left out only once the autoscaler has written it, and given as it is until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Object = Mapping[str, Any]


def autoscaler_of(deployment: str, autoscalers: Iterable[Object]) -> str | None:
    """The name of the autoscaler (HorizontalPodAutoscaler or ScaledObject) that has the Deployment."""
    for each in autoscalers:
        target = (each.get("spec") or {}).get("scaleTargetRef") or {}
        # A ScaledObject without a kind means a Deployment.
        if target.get("kind", "Deployment") == "Deployment" and target.get("name") == deployment:
            return str(each["metadata"]["name"])
    return None


def replicas_to_apply(wanted: int | None, live: Object | None, is_autoscaled: bool) -> int | None:
    """What to put into the manifest; None: leave the field out."""
    if live is None or not is_autoscaled:
        return wanted
    if is_written_by_others(live):
        return None
    return int((live.get("spec") or {}).get("replicas", 1))


def is_written_by_others(live: Object) -> bool:
    """Whether somebody besides us owns `spec.replicas`, and would keep it if we let it go."""
    for entry in live["metadata"].get("managedFields") or ():
        is_ours = entry.get("manager") == "icestream-operator" and entry.get("operation") == "Apply"
        if not is_ours and "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            return True
    return False
