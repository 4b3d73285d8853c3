"""`spec.jobs`: job managers in pods of their own, each configured by environment variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from icestream.operator.resources.cluster_spec import Job, Tree
from icestream.operator.resources.draft import Draft
from icestream.operator.resources.fields import Fields
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.templates import read_env_from, read_variable
from icestream.operator.resources.tuning import read_resources

_RESOURCES: Final[Tree] = {
    "requests": {"cpu": "200m", "memory": "512Mi"},
    "limits": {"cpu": "1", "memory": "2Gi"},
}
_OURS: Final = ("HTTP_HOST", "HTTP_PORT", "HOME")
_SECRET_WORDS: Final = ("PASSWORD", "SECRET", "TOKEN", "CREDENTIAL", "JAAS")


def read_jobs(spec: Fields, draft: Draft, bootstrap_servers: str) -> tuple[Job, ...]:
    jobs = tuple(_job(one, draft, bootstrap_servers) for one in spec.maps("jobs"))
    for name, count in Counter(job.name for job in jobs).items():
        if count > 1:
            raise InvalidResource(f"spec.jobs has '{name[:80]}' twice; give each job a name of its own")
    return jobs


def _job(fields: Fields, whole: Draft, bootstrap_servers: str) -> Job:
    draft = Draft()
    draft.has_no_effect(fields, ("name", "connector", "env", "envFrom", "resources"))
    name = fields.required("name")
    values = {"KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers, "JOB_ID": name}
    if "connector" in fields:
        values["CONNECT_GROUP_ID"] = f"connect-{fields.required('connector')}"
    references: list[Mapping[str, Any]] = []
    for one in fields.maps("env"):
        variable = read_variable(one, draft)
        if variable["name"] in _OURS:
            raise InvalidResource(f"{one.path} is {variable['name']}, which the operator sets; leave it out")
        if "value" in variable:
            values[variable["name"]] = variable["value"]
            if any(word in variable["name"].upper() for word in _SECRET_WORDS):
                draft.warn(
                    "SecretInPlainText",
                    f"{one.path} has the value of {variable['name']} in the resource; keep it in a Secret, "
                    "refer to it by valueFrom.secretKeyRef",
                )
        else:
            values.pop(variable["name"], None)
            references.append(variable)
    env_from = tuple(read_env_from(one, draft) for one in fields.maps("envFrom"))
    for notice in draft.warnings:
        whole.warn(notice.reason, notice.message)
    for used in draft.references:
        whole.refer(used.kind, used.name)
    resources = read_resources(fields) or _RESOURCES
    return Job(name, tuple(references), env_from, values, resources, draft.references)
