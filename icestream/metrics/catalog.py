"""The one list of our metrics. The collector, docs/observability.md and the Grafana dashboards are made from
it, so none of them has a name that the others do not have.

Cardinality is bounded by rule: a metric has no other labels than those of `LABELS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icestream.api.history import STAGES, Outcome
from icestream.api.status import State


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class Part(StrEnum):
    """What a metric is about: docs and dashboards have a section for each."""

    RECORDS = "Records"
    BATCHES = "Batches"
    COMMITS = "Commits and files"
    LAG = "Lag and freshness"
    TROUBLE = "Trouble"
    MAINTENANCE = "Maintenance"
    JOBS = "Connectors"
    WORKER = "The worker"
    PROCESS = "The process"


LABELS: Final = {
    "connector": "its name",
    "topic": "its name; at most 200 of a connector, the others together are `other`",
    "stage": "of a batch, or of a rejected record as Kafka Connect names it",
    "outcome": "one of a list",
    "transform": "its alias in the config",
    "target": "who did not answer, or the destination of the connector",
    "state": "one of a list",
    "change": "one of a list",
    "method": "the verb of a request, `other` if it is none of REST's",
    "route": "the path of a request with `{…}` for names, `other` if it is none of ours",
    "code": "the status of an answer",
    "area": "`heap` or `nonheap`",
    "gc": "the name of a garbage collector of the JVM",
    "version": "of what runs",
    "python_version": "of what runs",
    "spark_version": "of what runs",
}
"""Every label that a metric may have. Never a partition, an offset, a file, a commit, a text of an error."""

MOST_TOPICS: Final = 200
OTHER: Final = "other"

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 90)
_FILE_BYTES: Final = tuple(2.0**power for power in range(16, 31, 2))

REJECTED_STAGES: Final = (
    *("KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER", "TRANSFORMATION", "TASK_PUT", "TASK_POLL"),
    *("KAFKA_PRODUCE", "KAFKA_CONSUME"),
)
"""Where a record can fail, as Kafka Connect names them."""
BATCH_OUTCOMES: Final = tuple(one.value for one in Outcome if one is not Outcome.UNDER_WAY)
COMMIT_OUTCOMES: Final = ("landed", "refused", "not_landed", "unknown")
RETRY_TARGETS: Final = ("kafka", "destination", "spark")
SCHEMA_CHANGE_KINDS: Final = ("add_column", "widen", "make_optional", "create_table")
CIRCUIT_STATES: Final = ("closed", "open", "half-open")
MAINTENANCE_OUTCOMES: Final = ("done", "failed")


@dataclass(frozen=True)
class Metric:
    name: str
    """As text format 0.0.4 has it: counters end in `_total`."""
    kind: Kind
    part: Part
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    values: tuple[str, ...] = ()
    """All values of the last label, where they are a list: each is there from the start, as 0."""
    has_exemplars: bool = False
    """OpenMetrics carries the id of a batch with it, which is also in the commit and in the dead letter."""
    of_job: bool = False
    """`icestream job-manager` has it too."""


_CONNECTOR: Final = ("connector",)


def _counter(
    name: str,
    part: Part,
    help: str,
    *labels: str,
    values: tuple[str, ...] = (),
    of_job: bool = False,
    exemplars: bool = False,
) -> Metric:
    return Metric(name, Kind.COUNTER, part, help, labels, (), values, exemplars, of_job)


def _gauge(
    name: str, part: Part, help: str, *labels: str, values: tuple[str, ...] = (), of_job: bool = False
) -> Metric:
    return Metric(name, Kind.GAUGE, part, help, labels, values=values, of_job=of_job)


def _histogram(
    name: str,
    part: Part,
    help: str,
    *labels: str,
    buckets: tuple[float, ...] = _SECONDS,
    values: tuple[str, ...] = (),
    exemplars: bool = False,
    of_job: bool = False,
) -> Metric:
    return Metric(name, Kind.HISTOGRAM, part, help, labels, buckets, values, exemplars, of_job)


# The books: `read = written + rejected + filtered` at every scrape, since all four change together.
READ: Final = _counter(
    "icestream_records_read_total",
    Part.RECORDS,
    "Total records read by batches that landed.",
    *_CONNECTOR,
    of_job=True,
)
WRITTEN: Final = _counter(
    "icestream_records_written_total",
    Part.RECORDS,
    "Total records written as rows, objects or messages.",
    *_CONNECTOR,
    of_job=True,
)
REJECTED: Final = _counter(
    "icestream_records_rejected_total",
    Part.RECORDS,
    "Total records rejected, by the stage at which they failed.",
    *("connector", "stage"),
    values=REJECTED_STAGES,
    exemplars=True,
    of_job=True,
)
FILTERED: Final = _counter(
    "icestream_records_filtered_total",
    Part.RECORDS,
    "Total records dropped by a transform.",
    *("connector", "transform"),
    of_job=True,
)
BYTES_READ: Final = _counter(
    "icestream_bytes_read_total",
    Part.RECORDS,
    "Total bytes of the keys and values of records read.",
    *_CONNECTOR,
)
DEAD_LETTERS: Final = _counter(
    "icestream_dead_letters_total", Part.RECORDS, "Total dead letters published.", *_CONNECTOR
)
REPLAYED: Final = _counter(
    "icestream_dead_letters_replayed_total",
    Part.RECORDS,
    "Total dead letters sent again to their topic.",
    *_CONNECTOR,
)

BATCHES: Final = _counter(
    "icestream_batches_total",
    Part.BATCHES,
    "Total batches that ended, by outcome.",
    *("connector", "outcome"),
    values=BATCH_OUTCOMES,
    of_job=True,
)
UNDER_WAY: Final = _gauge(
    "icestream_batches_under_way", Part.BATCHES, "Batches that have begun and not ended.", *_CONNECTOR
)
BATCH_SECONDS: Final = _histogram(
    "icestream_batch_duration_seconds",
    Part.BATCHES,
    "Duration of batches that landed, from plan to end, in seconds.",
    *_CONNECTOR,
    of_job=True,
)
STAGE_SECONDS: Final = _histogram(
    "icestream_stage_duration_seconds",
    Part.BATCHES,
    "Duration of each stage of a batch, in seconds; stages inside tasks are summed over the tasks.",
    *("connector", "stage"),
    values=STAGES,
)
SPARK_JOB_SECONDS: Final = _histogram(
    "icestream_spark_job_duration_seconds",
    Part.BATCHES,
    "Duration of the Spark job of a batch, in seconds.",
    *_CONNECTOR,
)

COMMITS: Final = _counter(
    "icestream_commits_total",
    Part.COMMITS,
    "Total commits to targets, by outcome.",
    *("connector", "outcome"),
    values=COMMIT_OUTCOMES,
    of_job=True,
)
COMMIT_SECONDS: Final = _histogram(
    "icestream_commit_duration_seconds",
    Part.COMMITS,
    "Duration of a commit to one target, in seconds.",
    *_CONNECTOR,
    exemplars=True,
    of_job=True,
)
LAST_COMMIT: Final = _gauge(
    "icestream_commit_last_success_timestamp_seconds",
    Part.COMMITS,
    "Time of the last successful commit, in seconds since the epoch.",
    *_CONNECTOR,
    of_job=True,
)
NEXT_COMMIT: Final = _gauge(
    "icestream_commit_next_seconds",
    Part.COMMITS,
    "Seconds until the next commit is due.",
    *_CONNECTOR,
    of_job=True,
)
FILES: Final = _counter(
    "icestream_files_written_total",
    Part.COMMITS,
    "Total data files added by commits.",
    *_CONNECTOR,
    of_job=True,
)
FILE_BYTES: Final = _counter(
    "icestream_file_bytes_total",
    Part.COMMITS,
    "Total bytes of data files added by commits.",
    *_CONNECTOR,
    of_job=True,
)
FILE_SIZES: Final = _histogram(
    "icestream_file_size_bytes",
    Part.COMMITS,
    "Size of each data file added by commits, in bytes.",
    *_CONNECTOR,
    buckets=_FILE_BYTES,
    of_job=True,
)
SCHEMA_CHANGES: Final = _counter(
    "icestream_schema_changes_total",
    Part.COMMITS,
    "Total changes to the schema of a target, by kind.",
    *("connector", "change"),
    values=SCHEMA_CHANGE_KINDS,
)

LAG: Final = _gauge(
    "icestream_lag_records",
    Part.LAG,
    "Records between the end of a topic and the records in the target.",
    *("connector", "topic"),
    of_job=True,
)
LAG_MAX: Final = _gauge(
    "icestream_lag_records_max",
    Part.LAG,
    "Largest record lag of any partition of the connector.",
    *_CONNECTOR,
)
LAG_SECONDS: Final = _gauge(
    "icestream_lag_seconds",
    Part.LAG,
    "Longest time that a record may have waited outside the target, in seconds; 0 if all records are there.",
    *_CONNECTOR,
)
VALID_THROUGH: Final = _gauge(
    "icestream_valid_through_timestamp_seconds",
    Part.LAG,
    "Time up to which the target has all records, in seconds since the epoch.",
    *_CONNECTOR,
)
END_TO_END: Final = _histogram(
    "icestream_end_to_end_seconds",
    Part.LAG,
    "Age of the newest record of each topic when its batch landed, in seconds.",
    *_CONNECTOR,
    exemplars=True,
)

RETRIES: Final = _counter(
    "icestream_retries_total",
    Part.TROUBLE,
    "Total turns that failed and are repeated, by the system that did not answer.",
    *("connector", "target"),
    values=RETRY_TARGETS,
    of_job=True,
)
RESTARTS: Final = _counter(
    "icestream_restarts_total", Part.TROUBLE, "Total automatic restarts of a failed job.", *_CONNECTOR
)
FENCED: Final = _counter(
    "icestream_fenced_total",
    Part.TROUBLE,
    "Total times that another job took the place of this one.",
    *_CONNECTOR,
)
WAITING: Final = _gauge(
    "icestream_job_waiting",
    Part.TROUBLE,
    "1 while the job waits for the answer of another system.",
    *_CONNECTOR,
)
CIRCUIT: Final = _gauge(
    "icestream_circuit_breaker_state",
    Part.TROUBLE,
    "1 for the current state of the circuit breaker of the destination.",
    *("connector", "target", "state"),
    values=CIRCUIT_STATES,
)
CIRCUIT_OPENED: Final = _counter(
    "icestream_circuit_breaker_opened_total",
    Part.TROUBLE,
    "Total times that the circuit breaker of the destination opened.",
    "connector",
    "target",
)

MAINTENANCE_RUNS: Final = _counter(
    "icestream_maintenance_runs_total",
    Part.MAINTENANCE,
    "Total maintenance runs that changed something or failed, by outcome.",
    *("connector", "outcome"),
    values=MAINTENANCE_OUTCOMES,
)
MAINTENANCE_SECONDS: Final = _counter(
    "icestream_maintenance_seconds_total",
    Part.MAINTENANCE,
    "Total duration of maintenance runs, in seconds.",
    *_CONNECTOR,
)
MAINTENANCE_FILES: Final = _counter(
    "icestream_maintenance_removed_files_total",
    Part.MAINTENANCE,
    "Total files removed by maintenance.",
    *_CONNECTOR,
)
MAINTENANCE_BYTES: Final = _counter(
    "icestream_maintenance_removed_bytes_total",
    Part.MAINTENANCE,
    "Total bytes of files removed by maintenance.",
    *_CONNECTOR,
)
LAST_MAINTENANCE: Final = _gauge(
    "icestream_maintenance_last_timestamp_seconds",
    Part.MAINTENANCE,
    "Time of the last maintenance of a target, in seconds since the epoch.",
    *_CONNECTOR,
)

STATE: Final = _gauge(
    "icestream_job_state",
    Part.JOBS,
    "1 for the current state of the job.",
    *("connector", "state"),
    values=tuple(state.lower() for state in State),
    of_job=True,
)
TASKS: Final = _gauge("icestream_job_tasks", Part.JOBS, "Tasks of the connector.", *_CONNECTOR)

INFO: Final = _gauge(
    "icestream_info",
    Part.WORKER,
    "1, with the versions of Icestream, Python and Spark as labels.",
    *("version", "python_version", "spark_version"),
    of_job=True,
)
HEALTHY: Final = _gauge(
    "icestream_worker_healthy", Part.WORKER, "1 while `GET /health` reports the worker as healthy."
)
LEADER: Final = _gauge("icestream_group_leader", Part.WORKER, "1 while this worker leads its group.")
REBALANCES: Final = _counter(
    "icestream_group_rebalances_total",
    Part.WORKER,
    "Total rebalances that assigned connectors to this worker.",
)
SPARK_UP: Final = _gauge(
    "icestream_spark_up", Part.WORKER, "1 while Spark answers; absent before Spark starts."
)
SPARK_TASKS: Final = _gauge(
    "icestream_spark_tasks", Part.WORKER, "Tasks of Spark, by state.", "state", values=("active", "queued")
)
SPARK_EXECUTORS: Final = _gauge(
    "icestream_spark_executors", Part.WORKER, "Executors of Spark; 1 in local mode."
)
REQUESTS: Final = _counter(
    "icestream_rest_requests_total",
    Part.WORKER,
    "Total REST requests, by method, route and status code.",
    "method",
    "route",
    "code",
)
REQUEST_SECONDS: Final = _histogram(
    "icestream_rest_request_duration_seconds",
    Part.WORKER,
    "Duration of REST requests, in seconds.",
    *("method", "route"),
    buckets=_REQUEST_SECONDS,
)
SCRAPE_ERRORS: Final = _counter(
    "icestream_scrape_errors_total",
    Part.WORKER,
    "Total parts of scrape answers that failed; the log has the reason.",
)

# Names of others, which dashboards of others ask for; without our prefix.
CPU: Final = _counter(
    "process_cpu_seconds_total",
    Part.PROCESS,
    "Total CPU time of this process and its children (JVM, Python workers), in seconds.",
)
MEMORY: Final = _gauge(
    "process_resident_memory_bytes",
    Part.PROCESS,
    "Resident memory of this process and its children, in bytes.",
)
VIRTUAL: Final = _gauge(
    "process_virtual_memory_bytes", Part.PROCESS, "Virtual memory of this process and its children, in bytes."
)
OPEN_FILES: Final = _gauge("process_open_fds", Part.PROCESS, "Open file descriptors of this process.")
MOST_FILES: Final = _gauge("process_max_fds", Part.PROCESS, "Limit of open file descriptors of this process.")
STARTED: Final = _gauge(
    "process_start_time_seconds", Part.PROCESS, "Start time of this process, in seconds since the epoch."
)
THREADS: Final = _gauge("process_threads", Part.PROCESS, "Threads of this process.")
CHILDREN: Final = _gauge(
    "icestream_process_children", Part.PROCESS, "Living child processes of this process."
)
JVM_USED: Final = _gauge(
    "jvm_memory_used_bytes",
    Part.PROCESS,
    "Memory used by the JVM of Spark's driver, in bytes, by area.",
    "area",
)
JVM_MAX: Final = _gauge(
    "jvm_memory_max_bytes",
    Part.PROCESS,
    "Memory limit of the JVM of Spark's driver, in bytes, by area.",
    "area",
)
JVM_USED_OLD: Final = _gauge(
    "jvm_memory_bytes_used", Part.PROCESS, "Old name of `jvm_memory_used_bytes`.", "area"
)
JVM_MAX_OLD: Final = _gauge(
    "jvm_memory_bytes_max", Part.PROCESS, "Old name of `jvm_memory_max_bytes`.", "area"
)
JVM_GC: Final = Metric(
    "jvm_gc_collection_seconds",
    Kind.SUMMARY,
    Part.PROCESS,
    "Duration of garbage collections of the JVM of Spark's driver, in seconds.",
    ("gc",),
)
JVM_THREADS: Final = _gauge("jvm_threads_current", Part.PROCESS, "Threads of the JVM of Spark's driver.")

METRICS: Final = tuple(one for one in globals().copy().values() if isinstance(one, Metric))
"""In the order of this file."""
