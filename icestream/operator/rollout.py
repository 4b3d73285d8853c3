"""How far a Deployment is with what was asked of it. Pure; the status of a cluster is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]


def unfinished(deployment: Object) -> str | None:
    """What is still missing, in a sentence; None: every pod is of the newest template, and available."""
    name = deployment["metadata"]["name"]
    spec, status = deployment.get("spec") or {}, deployment.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration", 0)) < int(deployment["metadata"].get("generation", 0)):
        return f"Deployment {name} has been changed; its pods follow"
    problem = stuck(deployment)
    updated, total = int(status.get("updatedReplicas", 0)), int(status.get("replicas", 0))
    available = int(status.get("availableReplicas", 0))
    if updated < wanted:
        return f"{updated} of {wanted} pods of Deployment {name} are up to date{problem}"
    if total > updated:
        return f"{total - updated} old pods of Deployment {name} are still there{problem}"
    if available < wanted:
        return f"{available} of {wanted} pods of Deployment {name} are ready{problem}"
    return None


def stuck(deployment: Object) -> str:
    """Why it does not get on, as the Deployment itself says; empty if it does."""
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        is_failure = condition.get("type") == "ReplicaFailure" and condition.get("status") == "True"
        is_late = condition.get("type") == "Progressing" and condition.get("status") == "False"
        if is_failure or is_late:
            return f" ({condition.get('message') or condition.get('reason')})"
    return ""


def waiting_reason(pods: Sequence[Object]) -> str:
    """Why containers of pods wait, such as an image that cannot be pulled; empty if none does."""
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            reason = waiting.get("reason")
            if reason and reason not in ("ContainerCreating", "PodInitializing"):
                message = f": {waiting['message']}" if waiting.get("message") else ""
                return f" (pod {pod['metadata']['name']}: {reason}{message})"
    return ""


def available(deployment: Object | None) -> int:
    return 0 if deployment is None else int((deployment.get("status") or {}).get("availableReplicas", 0))
