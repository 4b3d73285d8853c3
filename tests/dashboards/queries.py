"""What the dashboards that people have for Kafka Connect ask Prometheus, as facts about them:

- Strimzi 1.2.0, `examples/metrics/grafana-dashboards/strimzi-kafka-connect.json`, and its twin in
  `examples/metrics/strimzi-metrics-reporter/`;
- Confluent's jmx-monitoring-stacks of 2025-11, `kafka-connect-cluster.json` for the JMX exporter from 1.0 in
  `dashboards/`, and for older ones in `dashboards-old-exporter/`.

Grafana's variables are `$name`; a variable that asks for the values of a label is the query that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Template
from typing import Final

STRIMZI: Final = "Strimzi"
REPORTER: Final = "Strimzi, Metrics Reporter"
CONFLUENT: Final = "Confluent"
CONFLUENT_OLD: Final = "Confluent, old exporter"

NEEDS_CADVISOR: Final = "asks cAdvisor for the CPU of the container"
NO_NODES: Final = "asks for the producers' bytes by broker, which librdkafka does not tell us"
ONLY_WHEN: Final = "unassigned and destroyed: has data only while there are such tasks"


@dataclass(frozen=True)
class Query:
    dashboard: str
    panel: str
    expression: str
    empty: str = ""
    """Why it has no data from us; empty: it has."""

    def filled(self, variables: Mapping[str, str]) -> str:
        return Template(self.expression).substitute(variables)


_KIND: Final = 'strimzi_io_kind=~"KafkaConnect.*"'
_S: Final = f'{_KIND},strimzi_io_cluster="$strimzi_connect_cluster_name"'
_NS: Final = f'namespace="$kubernetes_namespace",{_S}'
_PODS: Final = "by (kubernetes_pod_name)"
_POD: Final = (
    'namespace="$kubernetes_namespace",pod=~"$strimzi_connect_cluster_name-connect-.+",'
    'container="$strimzi_connect_cluster_name-connect"'
)
_ISSUES: Final = ("paused", "failed", "unassigned", "destroyed")
_NEVER: Final = ("unassigned", "destroyed")


@dataclass(frozen=True)
class _Names:
    """Where the two dashboards of Strimzi differ."""

    dashboard: str
    worker: str
    consumer: str
    producer: str
    admin: str
    outgoing: str
    incoming: str
    coordinator: str
    rebalance: str
    connector: str
    info: str
    failures: str
    task_status: str
    cpu: str
    cpu_empty: str
    incoming_empty: str


_JMX: Final = _Names(
    STRIMZI,
    "kafka_connect_worker",
    "kafka_consumer",
    "kafka_producer",
    "kafka_admin_client",
    "kafka_producer_outgoing_byte_total",
    "kafka_consumer_incoming_byte_total",
    "kafka_connect_coordinator",
    "kafka_connect_worker_rebalance",
    "kafka_connect_connector",
    "",
    "kafka_connect_task_error_total_record_failures",
    "kafka_connect_connector_task_status",
    "container_cpu_usage_seconds_total",
    NEEDS_CADVISOR,
    "",
)
_REPORTER: Final = _Names(
    REPORTER,
    "kafka_connect_connect_worker_metrics",
    "kafka_consumer_consumer_metrics",
    "kafka_producer_producer_metrics",
    "kafka_admin_client_admin_client_metrics",
    "kafka_producer_producer_metrics_outgoing_byte",
    "kafka_producer_producer_node_metrics_incoming_byte",
    "kafka_connect_connect_coordinator_metrics",
    "kafka_connect_connect_worker_rebalance_metrics",
    "kafka_connect_connector_metrics",
    "_info",
    "kafka_connect_task_error_metrics_total_record_failures",
    "kafka_connect_connector_task_metrics_status_info",
    "process_cpu_seconds_total",
    "",
    NO_NODES,
)


def _strimzi(names: _Names) -> Iterator[Query]:
    def query(panel: str, expression: str, empty: str = "") -> Query:
        return Query(names.dashboard, panel, expression, empty)

    count = f"{names.worker}_connector_count"
    yield query("variable kubernetes_namespace", f"{count}{{{_KIND}}}")
    yield query(
        "variable strimzi_connect_cluster_name",
        f'{count}{{namespace="$kubernetes_namespace", {_KIND}}}',
    )
    yield query("Number of Connectors", f"sum({count}{{{_S}}})")
    yield query("Number of Tasks", f"sum({names.worker}_task_count{{{_S}}})")
    for client in (names.consumer, names.producer, names.admin):
        yield query("Connection Count", f"sum({client}_connection_count{{{_S}}})")
    yield query("Outgoing Bytes per Second", f"sum(rate({names.outgoing}{{{_S}}}[5m])) {_PODS}")
    yield query(
        "Incoming Bytes per Second", f"sum(rate({names.incoming}{{{_S}}}[5m])) {_PODS}", names.incoming_empty
    )
    yield query("Assigned Connectors", f"sum({names.coordinator}_assigned_connectors{{{_S}}}) {_PODS}")
    yield query("Assigned Tasks", f"sum({names.coordinator}_assigned_tasks{{{_S}}}) {_PODS}")
    yield query("Rebalancing", f"sum({names.rebalance}_rebalancing{{{_S}}})")
    for state in _ISSUES:
        yield query(
            "Connector Tasks with Issues",
            f"sum({names.worker}_connector_{state}_task_count{{{_NS}}}) by (connector) != 0",
            ONLY_WHEN if state in _NEVER else "",
        )
    for state in ("running", *_ISSUES):
        yield query("Connector Task State", f"sum({names.worker}_connector_{state}_task_count{{{_S}}})")
    joined = " ".join(
        f"* on(connector) group_left({fact}) {names.connector}_{fact}{names.info}{{}}"
        for fact in ("connector_class", "connector_version", "connector_type")
    )
    yield query(
        "Connector Status",
        f"sum({names.connector}_status{names.info}{{{_S}}} {joined}) by (connector, status, connector_class, "
        "kubernetes_pod_name, connector_version, connector_type)",
    )
    yield query(
        "Connector Task Status",
        f"sum({names.failures}{{{_S}}} * on(connector, task) group_left(status) {names.task_status}{{}}) "
        "by (connector, status, kubernetes_pod_name, task)",
    )
    yield query("CPU Usage", f"sum(rate({names.cpu}{{{_POD}}}[5m])) by (pod)", names.cpu_empty)
    yield query("JVM Memory", f"sum (jvm_memory_used_bytes{{{_S}}}) {_PODS}")
    yield query("Time Spent in GC", f"sum(rate(jvm_gc_collection_seconds_sum{{{_S}}}[5m])) {_PODS}")
    yield query("JVM Thread Count", f"sum(jvm_threads_current{{{_NS}}}) {_PODS}")


_J: Final = 'job="kafka-connect", env="$env"'
_CLUSTER: Final = 'kafka_connect_cluster_id=~"$kafka_connect_cluster_id"'
_I: Final = f'{_J},instance=~"$instance"'
_L: Final = f"{_I},{_CLUSTER}"
_C: Final = f'{_L},connector=~"$connector"'
_T: Final = f'{_C},task!=""'
_SYSTEM: Final = f'job="kafka-connect",env="$env",{_CLUSTER},instance=~"$instance"'
_WORKER: Final = "kafka_connect_connect_worker_metrics"
_STATUS: Final = "kafka_connect_connector_metrics"
_TASK_STATES: Final = ("total", "running", "paused", "failed", "unassigned", "destroyed")


def _confluent(dashboard: str, app: str, total: str, memory: str) -> Iterator[Query]:
    def query(panel: str, expression: str, empty: str = "") -> Query:
        return Query(dashboard, panel, expression, empty)

    yield query("variable env", f"count by (env) ({app})")
    yield query("variable kafka_connect_cluster_id", f"count by (kafka_connect_cluster_id) ({app})")
    yield query("variable instance", f"count by (instance) ({app}{{{_J},{_CLUSTER}}})")
    paused = f"kafka_connect_connector_task_metrics_pause_ratio{{{_J},{_CLUSTER}}}"
    yield query("variable connector", f"count by (connector) ({paused})")
    for state in _TASK_STATES:
        yield query(f"Tasks {state.title()}", f"sum({_WORKER}_connector_{state}_task_count{{{_C}}})")
    for state in ("running", "stopped", "paused"):
        yield query("Connector repartition per status", f'sum ({_STATUS}{{{_C},status="{state}"}})')
    yield query("Status of connectors", f'sum({_STATUS}{{{_C},status!=""}}) by (status)')
    yield query("CPU Usage", f"rate(process_cpu_seconds_total{{{_SYSTEM}}}[5m])")
    yield query("JVM Memory Used", f"sum without(area)({memory}{{{_SYSTEM}}})")
    yield query("JVM Memory Used", f'jvm_memory_bytes_max{{{_SYSTEM},area="heap"}}')
    yield query("JVM GC time", f"sum without(gc)(rate(jvm_gc_collection_seconds_sum{{{_SYSTEM}}}[5m]))")
    for fact in ("status", "connector_type", "connector_version", "connector_class"):
        yield query("Connectors", f'{_STATUS}{{{_C},{fact}!=""}}')
    for state in _TASK_STATES:
        yield query("Connectors", f"sum by (connector) ({_WORKER}_connector_{state}_task_count{{{_C}}})")
    for fact in ("start_time_ms", "version"):
        yield query("Connect Worker", f'{app}{{{_L},client_id!="",{fact}!=""}}')
    for fact in (
        *("connector_count", "connector_startup_success_total", "connector_startup_failure_total"),
        *("task_count", "task_startup_success_total", "task_startup_failure_total"),
    ):
        yield query("Connect Worker", f"sum by (instance) ({_WORKER}_{fact}{{{_I}}})")
    for panel, fact in (
        ("Network IO Rate", "network_io_rate"),
        ("Incoming Byte Rate", "incoming_byte_rate"),
        ("Outgoing Byte Rate", "outgoing_byte_rate"),
        ("Current number of active connections", "connection_count"),
        ("Failed authentication connections", f"failed_authentication{total}"),
        ("Success authentication connections", "successful_authentication_rate"),
        ("IO Ratio", "io_ratio"),
        ("Responses received and sent", "response_rate"),
        ("Average number of requests", "request_rate"),
    ):
        yield query(panel, f'kafka_connect_connect_metrics_{fact}{{{_L},client_id!=""}}')
    rebalances = "kafka_connect_connect_worker_rebalance_metrics"
    twice = f'{_I},job="kafka-connect",{_CLUSTER}'
    yield query("Total number of rebalances", f"{rebalances}_completed_rebalances{total}{{{twice}}} >= 0")
    yield query("Time since last rebalance", f"{rebalances}_time_since_last_rebalance_ms{{{twice}}} >= 0")
    yield query("Rebalances average time", f"{rebalances}_rebalance_avg_time_ms{{{_L}}}")
    for panel, fact in (
        ("Batch Size Average", "batch_size_avg"),
        ("Batch Size Max", "batch_size_max"),
        ("Offset commit success percentage", "offset_commit_success_percentage"),
        ("Offset commit Average Time", "offset_commit_avg_time_ms"),
        ("Running ratio", "running_ratio"),
    ):
        yield query(panel, f"kafka_connect_connector_task_metrics_{fact}{{{_C}}}")
    for panel, fact in (
        ("Total record failures", "total_record_failures"),
        ("Total record errors", "total_record_errors"),
        ("Total record skipped", "total_records_skipped"),
        ("Total errors logged", "total_errors_logged"),
        ("Total retries", "total_retries"),
        ("Dead letter queue Produce requests", "deadletterqueue_produce_requests"),
        ("Dead letter queue Produce failures", "deadletterqueue_produce_failures"),
    ):
        yield query(panel, f"kafka_connect_task_error_metrics_{fact}{{{_C}}}")
    for panel, fact in (
        ("Source Record Write rate", "source_record_write_rate"),
        ("Source Record Poll rate", "source_record_poll_rate"),
        ("Source Record Active Count average", "source_record_active_count_avg"),
        ("Source Record Active Count max", "source_record_active_count_max"),
        ("Poll Batch Average time", "poll_batch_avg_time_ms"),
        ("Poll Batch Max time", "poll_batch_max_time_ms"),
    ):
        yield query(panel, f"kafka_connect_source_task_metrics_{fact}{{{_T}}}")
    for panel, fact in (
        ("Record read rate", "sink_record_read_rate"),
        ("Record send rate", "sink_record_send_rate"),
        ("Sink Record Active Count average", "sink_record_active_count_avg"),
        ("Sink Record Active Count max", "sink_record_active_count_max"),
        ("Offset commit completion rate", "offset_commit_completion_rate"),
        ("Offset commit skip rate", "offset_commit_skip_rate"),
        ("Put Batch Average time", "put_batch_avg_time_ms"),
        ("Put Batch Max time", "put_batch_max_time_ms"),
        ("Partition Count", "partition_count"),
    ):
        yield query(panel, f"kafka_connect_sink_task_metrics_{fact}{{{_T}}}")


QUERIES: Final = (
    *_strimzi(_JMX),
    *_strimzi(_REPORTER),
    *_confluent(CONFLUENT, "kafka_connect_app", "", "jvm_memory_used_bytes"),
    *_confluent(CONFLUENT_OLD, "kafka_connect_app_info", "_total", "jvm_memory_bytes_used"),
)
