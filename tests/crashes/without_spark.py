"""The job of a pipeline in this process and without Spark, and what `verify` says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icestream.jobs.audits.audit import AuditFindings, findings
from icestream.jobs.audits.audit_facts import gather
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from tests.crashes.pipeline import Pipeline, drain


def manager(
    pipeline: Pipeline, reached: Callable[[str], None] = lambda point: None, runner: Any = None
) -> SinkManager:
    runner = runner or runner_of(pipeline)
    return sink_manager(pipeline.name, pipeline.config, pipeline.worker, runner, reached)


def runner_of(pipeline: Pipeline, kind: type[InWorkerRunner] = InWorkerRunner) -> InWorkerRunner:
    return kind({"bootstrap.servers": pipeline.bootstrap}, RecordSettings.of(pipeline.config))


def run(pipeline: Pipeline) -> None:
    """Run the job in this process until nothing waits."""
    job = manager(pipeline)
    try:
        drain(job)
    finally:
        job.close()


def verdicts(pipeline: Pipeline) -> list[AuditFindings]:
    worker = {"bootstrap.servers": pipeline.bootstrap}
    found = gather(pipeline.name, pipeline.config, worker, deep=True, sleep=lambda seconds: None)
    return [findings(evidence) for _, evidence in found]
