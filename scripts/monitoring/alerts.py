"""The alerts that we ship: one list, from which the rules for Prometheus, those for its operator, and their
part of docs/observability.md are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COMMIT_INTERVAL: Final = 300
"""Seconds: Iceberg's default. Whoever commits less often changes the first alert."""
_SAME: Final = "on (job, instance, connector)"
_EACH: Final = "by (job, instance, connector)"


@dataclass(frozen=True)
class Alert:
    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    description: str
    to_do: str
    """The runbook: for whoever it woke up."""

    @property
    def anchor(self) -> str:
        return self.name.lower().replace(" ", "-")


PODS: Final = (
    Alert(
        "ConnectContainersDown",
        'absent(container_last_seen{container=~".+-connect",pod=~".+-connect-.+"})',
        "3m",
        "major",
        "All Kafka Connect containers are down",
        "No container of Kafka Connect has been seen for 3 minutes.",
        "Strimzi's own rule; it needs cAdvisor's metrics and pods whose names end as Strimzi's do. "
        "`kubectl describe pod` says why the pods do not run.",
    ),
)
"""Of no use outside of Kubernetes: what is absent there would fire for ever."""

STRIMZI: Final = (
    Alert(
        "ConnectFailedConnector",
        'sum(kafka_connect_connector_status{status="failed"}) by (namespace, pod) > 0',
        "5m",
        "major",
        "A connector has failed",
        "One or more connectors have been FAILED for 5 minutes.",
        "`icestream connectors` names it, `icestream connector status NAME` says why and what to do; "
        "mend it, then `icestream connector restart NAME`.",
    ),
    Alert(
        "ConnectFailedTask",
        "sum(kafka_connect_worker_connector_failed_task_count) by (namespace, pod) > 0",
        "5m",
        "major",
        "A task has failed",
        "One or more tasks have been FAILED for 5 minutes.",
        "As for ConnectFailedConnector: all tasks of a connector are one job, and fail together.",
    ),
)
"""Strimzi's own, with their names, expressions and times."""

CONFLUENT: Final = (
    Alert(
        "Failed connector task",
        "sum(kafka_connect_connect_worker_metrics_connector_failed_task_count) > 0",
        "2m",
        "major",
        "A task has failed",
        "One or more tasks have been FAILED for 2 minutes.",
        "As for ConnectFailedConnector.",
    ),
)
"""Confluent's own."""

JOBS: Final = (
    Alert(
        "IcestreamNoCommit",
        f"time() - icestream_commit_last_success_timestamp_seconds > 3 * {COMMIT_INTERVAL}"
        f" and {_SAME} icestream_lag_records_max > 0"
        f' and {_SAME} icestream_job_state{{state="running"}} == 1',
        "5m",
        "critical",
        "{{ $labels.connector }} commits nothing",
        "{{ $labels.connector }} has records to read and has not committed for {{ $value | "
        "humanizeDuration }}.",
        "`icestream connector status NAME` says what the job waits for: a catalog, an object store, "
        "Kafka, Spark. If it waits for nothing, the log of the worker (its `batch`) says what the batch "
        "does. Connectors that commit less often than every five minutes need another limit here.",
    ),
    Alert(
        "IcestreamLagGrows",
        f"icestream_lag_seconds > 900 and {_SAME} deriv(icestream_lag_seconds[15m]) > 0",
        "15m",
        "warning",
        "{{ $labels.connector }} falls behind",
        "The oldest record that {{ $labels.connector }} has not landed is {{ $value | humanizeDuration "
        "}} old, and the lag grows.",
        "Compare the rate of the topic with the rate of the connector (dashboard *Icestream: one "
        "connector*). If batches follow each other without a pause, raise `tasks.max` or give the "
        "worker more cores; if they wait, the stages show for what.",
    ),
    Alert(
        "IcestreamRejecting",
        f"sum {_EACH} (rate(icestream_records_rejected_total[10m]))"
        f" / sum {_EACH} (rate(icestream_records_read_total[10m])) > 0.01",
        "10m",
        "warning",
        "{{ $labels.connector }} rejects records",
        "{{ $value | humanizePercentage }} of the records of {{ $labels.connector }} are rejected.",
        "`icestream dlq` shows the dead letters with stage and reason. Mend the producer, the converter "
        "or the transform, then `icestream dlq replay`.",
    ),
    Alert(
        "IcestreamBooksDoNotBalance",
        f"sum {_EACH} (icestream_records_read_total)"
        f" - sum {_EACH} (icestream_records_written_total)"
        f" - sum {_EACH} (icestream_records_rejected_total)"
        f" - sum {_EACH} (icestream_records_filtered_total or 0 * icestream_records_read_total) != 0",
        "15m",
        "critical",
        "The books of {{ $labels.connector }} do not balance",
        "{{ $value }} records of {{ $labels.connector }} were read and are neither written, rejected "
        "nor filtered.",
        "This is a defect of ours. `icestream verify NAME --deep` compares topic and table record by "
        "record; report what it says, with the log of the worker.",
    ),
    Alert(
        "IcestreamUnknownCommits",
        'increase(icestream_commits_total{outcome="unknown"}[30m]) > 0',
        "0m",
        "warning",
        "The outcome of a commit of {{ $labels.connector }} was unknown",
        "A catalog or store did not say whether a commit of {{ $labels.connector }} landed.",
        "Nothing is lost and nothing is twice: the next turn asks the table. If it happens again and "
        "again, look at the catalog's own log: it answers too late, or a proxy before it gives up too early.",
    ),
    Alert(
        "IcestreamFenced",
        "increase(icestream_fenced_total[15m]) > 1",
        "0m",
        "critical",
        "Two jobs fight for {{ $labels.connector }}",
        "{{ $labels.connector }} was fenced {{ $value | humanize }} times in 15 minutes: somebody else "
        "runs it too.",
        "Look for a second cluster with the same connector name and the same Kafka, or a worker that "
        "was thought dead. Records stay exactly-once meanwhile; stop one of the two.",
    ),
    Alert(
        "IcestreamCircuitOpen",
        'icestream_circuit_breaker_state{state="open"} == 1',
        "5m",
        "warning",
        "{{ $labels.target }} is away",
        "The circuit breaker of {{ $labels.target }} has been open for 5 minutes; {{ $labels.connector "
        "}} waits.",
        "`icestream connector status NAME` has the last error. Jobs go on by themselves when the "
        "destination answers.",
    ),
    Alert(
        "IcestreamRestartLoop",
        "increase(icestream_restarts_total[30m]) > 3",
        "0m",
        "warning",
        "{{ $labels.connector }} restarts again and again",
        "{{ $labels.connector }} was restarted {{ $value | humanize }} times in 30 minutes by its "
        "restart policy.",
        "`icestream connector status NAME` has the trace of the last failure. "
        "`icestream.restart.policy=none` leaves it FAILED.",
    ),
    Alert(
        "IcestreamDeadLettersFail",
        "increase(kafka_connect_task_error_deadletterqueue_produce_failures[15m]) > 0",
        "0m",
        "warning",
        "Dead letters of {{ $labels.connector }} are not written",
        "Kafka refused dead letters of {{ $labels.connector }}.",
        "The status of the connector says why: most often the topic is missing, or the login may not "
        "write to it. The batch is tried again, and no letter is lost.",
    ),
    Alert(
        "IcestreamSmallFiles",
        "rate(icestream_file_bytes_total[1h]) / rate(icestream_files_written_total[1h]) < 1e6",
        "6h",
        "info",
        "{{ $labels.connector }} writes small files",
        "Files of {{ $labels.connector }} have {{ $value | humanize1024 }}B on average.",
        "Commit less often (`iceberg.control.commit.interval-ms`), run fewer tasks, partition more "
        "coarsely, or switch [maintenance](maintenance.md) on.",
    ),
    Alert(
        "IcestreamSlowCommits",
        "histogram_quantile(0.95, sum by (job, instance, connector, le)"
        " (rate(icestream_commit_duration_seconds_bucket[15m]))) > 30",
        "15m",
        "warning",
        "Commits of {{ $labels.connector }} are slow",
        "One commit in twenty of {{ $labels.connector }} takes longer than {{ $value | humanizeDuration }}.",
        "Look at the catalog and at the table's metadata: many manifests or snapshots want "
        "[maintenance](maintenance.md).",
    ),
    Alert(
        "IcestreamMaintenanceFails",
        'increase(icestream_maintenance_runs_total{outcome="failed"}[6h]) > 2',
        "0m",
        "warning",
        "Maintenance of tables of {{ $labels.connector }} fails",
        "Maintenance of {{ $labels.connector }} failed {{ $value | humanize }} times in 6 hours.",
        'The log has a line "was not maintained" with the reason. Records land all the same.',
    ),
)

WORKERS: Final = (
    Alert(
        "IcestreamWorkerDown",
        'up{job="icestream"} == 0',
        "3m",
        "critical",
        "Worker {{ $labels.instance }} does not answer",
        "{{ $labels.instance }} has not answered scrapes for 3 minutes.",
        "`GET /live` and `GET /ready` of the worker have reasons in words; `icestream doctor` looks "
        "from outside. In a cluster others have taken its connectors.",
    ),
    Alert(
        "IcestreamWorkerUnhealthy",
        "icestream_worker_healthy == 0",
        "5m",
        "warning",
        "Worker {{ $labels.instance }} is not healthy",
        "`GET /health` of {{ $labels.instance }} has not been 200 for 5 minutes.",
        "The answer of `GET /health` is a sentence; `icestream doctor` looks at what the worker needs.",
    ),
    Alert(
        "IcestreamSparkDown",
        "icestream_spark_up == 0",
        "5m",
        "critical",
        "Spark of {{ $labels.instance }} is away",
        "Spark of {{ $labels.instance }} has not answered for 5 minutes; connectors that need it wait.",
        "The worker starts Spark again by itself. If that fails, its log says why: memory, Java, or the "
        "cluster of `spark.master`.",
    ),
    Alert(
        "IcestreamNoLeader",
        "max by (job) (icestream_group_leader) == 0",
        "5m",
        "critical",
        "Nobody leads the cluster",
        "None of the workers of {{ $labels.job }} has led the group for 5 minutes: nobody takes changes.",
        "Workers cannot reach Kafka's group coordinator, or rebalance without end: the log of each says "
        "which.",
    ),
    Alert(
        "IcestreamOpenFiles",
        "process_open_fds / process_max_fds > 0.8 and on (job, instance) icestream_info",
        "10m",
        "warning",
        "{{ $labels.instance }} runs out of open files",
        "{{ $labels.instance }} has {{ $value | humanizePercentage }} of the files open that it may.",
        "Raise the limit (`ulimit -n`, `LimitNOFILE`), or move connectors to another worker.",
    ),
    Alert(
        "IcestreamScrapeErrors",
        "increase(icestream_scrape_errors_total[15m]) > 0",
        "0m",
        "info",
        "Metrics of {{ $labels.instance }} are incomplete",
        "Parts of the metrics of {{ $labels.instance }} could not be made.",
        "This is a defect of ours: the log of the worker says which part; report it.",
    ),
)

POD_GROUP: Final = "strimzi-pods"
GROUPS: Final = {
    POD_GROUP: PODS,
    "strimzi-connect": STRIMZI,
    "confluent-connect": CONFLUENT,
    "icestream-connectors": JOBS,
    "icestream-workers": WORKERS,
}
ALERTS: Final = tuple(alert for group in GROUPS.values() for alert in group)
