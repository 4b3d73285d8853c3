"""The map `template`: what users add to pods, containers and services, merged into ours.

Lists of what is allowed: workers keep to the profile "restricted" of Pod Security whatever a template says.
"""

from __future__ import annotations

import re
from typing import Any, Final

from icestream.operator.resources.cluster_spec import Metadata, PodTemplate, Tree
from icestream.operator.resources.draft import UNSUPPORTED, Draft
from icestream.operator.resources.fields import Fields, tree
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.names import dns_label

GRACE_SECONDS: Final = 60
MOUNTS_BELOW: Final = "/mnt"

_POD_SETTINGS: Final = (
    "affinity",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "imagePullSecrets",
    "priorityClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)
_POD_FIELDS: Final = (
    *_POD_SETTINGS,
    "metadata",
    "securityContext",
    "terminationGracePeriodSeconds",
    "tmpDirSizeLimit",
    "volumes",
)
_POD_SECURITY: Final = (
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
)
_CONTAINER_SECURITY: Final = ("runAsUser", "runAsGroup", "readOnlyRootFilesystem")
_AS_IT_IS: Final[Tree] = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
"""What a template may repeat: it is so already."""
_VOLUMES: Final = ("secret", "configMap", "emptyDir", "persistentVolumeClaim", "csi", "projected")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_FROM: Final = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef")
_MERGED: Final = ("pod", "connectContainer", "apiService", "podDisruptionBudget", "serviceAccount")


def read_template(template: Fields, draft: Draft) -> PodTemplate:
    """`template.pod` and `template.connectContainer`; a warning for the parts that have no use here."""
    for path in template.others(_MERGED):
        draft.warn(UNSUPPORTED, f"{path} has no effect: there is no such object here")
    pod, container = template.map("pod"), template.map("connectContainer")
    draft.has_no_effect(pod, _POD_FIELDS)
    draft.has_no_effect(container, ("env", "securityContext", "volumeMounts"))
    settings = {key: tree(pod.values[key], pod.at(key)) for key in _POD_SETTINGS if key in pod}
    metadata = read_metadata(pod, draft)
    volumes = tuple(_volume(one, draft) for one in pod.maps("volumes"))
    names = frozenset(str(one["name"]) for one in volumes)
    return PodTemplate(
        labels=metadata.labels,
        annotations=metadata.annotations,
        settings=settings,
        pod_security=_security(pod.map("securityContext"), _POD_SECURITY, draft),
        container_security=_security(container.map("securityContext"), _CONTAINER_SECURITY, draft),
        grace_seconds=pod.number("terminationGracePeriodSeconds", GRACE_SECONDS),
        tmp_size=pod.quantity("tmpDirSizeLimit", "2Gi"),
        env=tuple(read_variable(one, draft) for one in container.maps("env")),
        volumes=volumes,
        mounts=tuple(_mount(one, names) for one in container.maps("volumeMounts")),
    )


def read_metadata(fields: Fields, draft: Draft) -> Metadata:
    metadata = fields.map("metadata")
    draft.has_no_effect(metadata, ("labels", "annotations"))
    return Metadata(metadata.labels("labels"), metadata.labels("annotations"))


def read_variable(fields: Fields, draft: Draft) -> Tree:
    """One `{name, value | valueFrom}`; the Secrets and ConfigMaps that it names count as references."""
    name = fields.required("name")
    if not _VARIABLE.fullmatch(name):
        raise InvalidResource(f"{fields.at('name')} is no name of a variable; take letters, digits and '_'")
    if "valueFrom" not in fields:
        return {"name": name, "value": fields.text("value")}
    origin = fields.map("valueFrom")
    kinds = [kind for kind in _FROM if kind in origin]
    if len(kinds) != 1 or origin.others(_FROM):
        raise InvalidResource(f"{origin.path} needs exactly one of {', '.join(_FROM)}; set one")
    return {"name": name, "valueFrom": {kinds[0]: _key_of(origin.map(kinds[0]), kinds[0], draft)}}


def read_env_from(fields: Fields, draft: Draft) -> Tree:
    """One `{secretRef | configMapRef, prefix}`."""
    kinds = [kind for kind in ("secretRef", "configMapRef") if kind in fields]
    if len(kinds) != 1:
        raise InvalidResource(f"{fields.path} needs either secretRef or configMapRef; set one")
    held = fields.map(kinds[0])
    name = held.required("name")
    draft.refer("Secret" if kinds[0] == "secretRef" else "ConfigMap", name)
    prefix = fields.text("prefix")
    found: dict[str, Any] = {kinds[0]: {"name": name}}
    return {"prefix": prefix, **found} if prefix else found


def external_volume(fields: Fields, draft: Draft, folder: str) -> tuple[Tree, Tree]:
    """One of `externalConfiguration.volumes`, and its mount below the folder."""
    name = fields.required("name")
    kinds = [kind for kind in ("secret", "configMap") if kind in fields]
    if len(kinds) != 1 or "/" in name or name in (".", ".."):
        raise InvalidResource(f"{fields.path} needs a plain name and either secret or configMap; mend it")
    _refer_to_volume(fields, draft)
    volume = dns_label(f"ext-conf-{name}")
    source = tree(fields.values[kinds[0]], fields.at(kinds[0]))
    return {"name": volume, kinds[0]: source}, {
        "name": volume,
        "mountPath": f"{folder}/{name}",
        "readOnly": True,
    }


def _key_of(fields: Fields, kind: str, draft: Draft) -> Any:
    if kind in ("secretKeyRef", "configMapKeyRef"):
        fields.required("key")
        draft.refer("Secret" if kind == "secretKeyRef" else "ConfigMap", fields.required("name"))
    return tree(fields.values, fields.path)


def _volume(fields: Fields, draft: Draft) -> Tree:
    name = fields.required("name")
    kinds = [key for key in fields.values if key != "name" and key in fields]
    if len(kinds) != 1 or kinds[0] not in _VOLUMES:
        raise InvalidResource(
            f"{fields.path} needs exactly one of {', '.join(_VOLUMES)}; no other is allowed"
        )
    if dns_label(name) != name:
        raise InvalidResource(f"{fields.at('name')} is no DNS label; take small letters, digits and '-'")
    _refer_to_volume(fields, draft)
    return {"name": name, kinds[0]: tree(fields.values[kinds[0]], fields.at(kinds[0]))}


def _refer_to_volume(fields: Fields, draft: Draft) -> None:
    if "secret" in fields:
        draft.refer("Secret", fields.map("secret").required("secretName"))
    if "configMap" in fields:
        draft.refer("ConfigMap", fields.map("configMap").required("name"))


def _mount(fields: Fields, volumes: frozenset[str]) -> Tree:
    path, name = fields.required("mountPath"), fields.required("name")
    inside = path == MOUNTS_BELOW or path.startswith(f"{MOUNTS_BELOW}/")
    if not inside or ".." in path.split("/") or ":" in path:
        raise InvalidResource(f"{fields.at('mountPath')} is '{path[:80]}'; mount below {MOUNTS_BELOW} only")
    if name not in volumes:
        raise InvalidResource(
            f"{fields.at('name')} is '{name[:80]}', which is none of template.pod.volumes; add it"
        )
    return dict(tree(fields.values, fields.path))


def _security(fields: Fields, allowed: tuple[str, ...], draft: Draft) -> Tree:
    found = {}
    for key, value in fields.values.items():
        if key in allowed and not (key == "runAsUser" and value == 0):
            found[key] = tree(value, fields.at(key))
        elif value is not None and _AS_IT_IS.get(key) != value:
            draft.warn(
                UNSUPPORTED, f"{fields.at(key)} has no effect: workers keep to the restricted profile of pods"
            )
    if "runAsUser" in found:
        fields.number("runAsUser", 0, at_least=1)
    return found
