"""What `/metrics` says of a job, as Prometheus reads it. Used by `job_health`; every name is in
docs/job-manager.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from icestream import __version__
from icestream.api.status import JobStatus, State

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class JobFacts:
    """A job at one moment."""

    name: str
    status: JobStatus
    retries: int = 0
    """Turns that failed for a reason that may pass."""


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    help: str


INFO: Final = Metric("icestream_info", "gauge", "The version that runs.")
STATE: Final = Metric("icestream_job_state", "gauge", "1 for the state that the job is in.")
LAG: Final = Metric("icestream_lag_records", "gauge", "Records that wait for a commit.")
WRITTEN: Final = Metric("icestream_records_written_total", "counter", "Rows in the tables.")
REJECTED: Final = Metric("icestream_records_rejected_total", "counter", "Records that were set aside.")
FILTERED: Final = Metric("icestream_records_filtered_total", "counter", "Records that a transform dropped.")
BATCHES: Final = Metric("icestream_batches_total", "counter", "Commits since the start of this process.")
LAST_COMMIT: Final = Metric(
    "icestream_commit_last_success_timestamp_seconds", "gauge", "When the last commit was, in epoch seconds."
)
NEXT_COMMIT: Final = Metric("icestream_commit_next_seconds", "gauge", "Time until the next commit is due.")
RETRIES: Final = Metric(
    "icestream_retries_total", "counter", "Turns that failed and are tried again, since the start."
)
METRICS: Final = (
    *(INFO, STATE, LAG, WRITTEN, REJECTED, FILTERED, BATCHES, LAST_COMMIT, NEXT_COMMIT, RETRIES),
)

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_Sample = tuple[dict[str, str], float]


def metrics_text(facts: JobFacts) -> str:
    """All metrics of a job, in Prometheus' text format; what is not known is left out."""
    return "".join(line for metric in METRICS for line in _lines(metric, _samples(metric, facts)))


def _samples(metric: Metric, facts: JobFacts) -> Sequence[_Sample]:
    progress, job = facts.status.progress, {"connector": facts.name}
    if metric is INFO:
        return [({"version": __version__}, 1)]
    if metric is STATE:
        return [({**job, "state": state.lower()}, float(facts.status.state is state)) for state in State]
    if metric is BATCHES:
        return [({**job, "outcome": "committed"}, progress.batches)]
    last, following = progress.last_commit_ms, progress.next_commit_in_ms
    value = {
        LAG: progress.lag,
        WRITTEN: progress.rows,
        REJECTED: progress.rejected,
        FILTERED: progress.filtered,
        LAST_COMMIT: None if last is None else last / 1000,
        NEXT_COMMIT: None if following is None else following / 1000,
        RETRIES: facts.retries,
    }[metric]
    return [] if value is None else [(job, value)]


def _lines(metric: Metric, samples: Sequence[_Sample]) -> Iterator[str]:
    if not samples:
        return
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    for labels, value in samples:
        shown = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
        yield f"{metric.name}{{{shown}}} {value:.15g}\n"
