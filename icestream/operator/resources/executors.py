"""Spark's executors in pods of their own: `spec.spark` of our kind, or `spark.master=k8s://…` in `config`."""

from __future__ import annotations

import re
from typing import Final

from icestream.operator.resources.cluster_spec import Executors
from icestream.operator.resources.draft import Draft
from icestream.operator.resources.fields import Fields
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.templates import read_template

MASTER: Final = "k8s://https://kubernetes.default.svc:443"
_MEMORY: Final = re.compile(r"[1-9][0-9]{0,9}[kmgt]", re.IGNORECASE)


def executors_of_properties(draft: Draft) -> Executors | None:
    """For who has only worker properties: Spark's own keys say how many there are, and how large."""
    if not draft.properties.get("spark.master", "").startswith("k8s://"):
        return None
    draft.needs_token = True
    return Executors()


def read_executors(fields: Fields, draft: Draft) -> Executors | None:
    spark = fields.map("spark")
    draft.has_no_effect(spark, ("executors", "master"))
    if "executors" not in spark:
        return executors_of_properties(draft)
    given = spark.map("executors")
    draft.has_no_effect(given, ("instances", "cores", "memory", "memoryOverhead", "template"))
    draft.properties.setdefault("spark.master", _master(spark))
    draft.needs_token = True
    return Executors(
        instances=given.number("instances", 2, at_most=10_000),
        cores=given.number("cores", 1, at_least=1, at_most=1_000),
        memory=_memory(given, "memory", "1g"),
        memory_overhead=_memory(given, "memoryOverhead", "1g"),
        template=read_template(given.map("template"), draft),
    )


def _master(spark: Fields) -> str:
    master = spark.text("master", MASTER)
    if not master.startswith("k8s://"):
        raise InvalidResource(f"{spark.at('master')} does not begin with k8s://; write {MASTER}")
    return master


def _memory(fields: Fields, key: str, default: str) -> str:
    value = fields.text(key, default)
    if not _MEMORY.fullmatch(value):
        raise InvalidResource(f"{fields.at(key)} is no amount that Spark knows; write it as 1g or 512m")
    return value.lower()
