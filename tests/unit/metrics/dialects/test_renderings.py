"""The names and labels of both dialects, and that both formats of Prometheus take them."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition, parser

from icestream.api.history import BatchRecord, Outcome, TargetCommit
from icestream.api.status import State
from icestream.metrics.dialects.attributes import GROUPS
from icestream.metrics.dialects.collecting import DIALECTS, ConnectMetrics
from icestream.metrics.dialects.confluent import confluent_shapes
from icestream.metrics.dialects.families import Shapes
from icestream.metrics.dialects.strimzi import strimzi_shapes
from tests.kit.programs import require_program
from tests.unit.metrics.dialects.examples import T0, FixedFacts, connector

Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]

BATCH = BatchRecord(
    "b1",
    T0,
    Outcome.COMMITTED,
    seconds=4.0,
    read=100,
    written=90,
    rejected={"VALUE_CONVERTER": 6},
    filtered={"drop": 4},
    bytes=5000,
    longest_task=2.0,
    letters=6,
    stages={"queue": 0.5, "commit": 0.25, "publish": 0.5},
    targets=(TargetCommit("t", "1", 90, 0.25),),
)


def metrics(facts: FixedFacts, *dialects: str) -> ConnectMetrics:
    return ConnectMetrics(facts, dialects or tuple(DIALECTS), clock_ms=lambda: T0)


def series(collected: ConnectMetrics) -> Series:
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in collected.collect():
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def names(shapes: Shapes) -> set[str]:
    return {shape.name for group in GROUPS for one in group.attributes for shape in shapes(group, one)}


class _Registered:
    def __init__(self, metrics: ConnectMetrics) -> None:
        self._metrics = metrics

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> list[Metric]:
        return list(self._metrics.collect())


def registry(metrics: ConnectMetrics) -> CollectorRegistry:
    made = CollectorRegistry()
    made.register(_Registered(metrics))
    return made


@pytest.fixture
def busy() -> ConnectMetrics:
    """A sink that has landed a batch, and a source."""
    running = [connector(tolerates_all=True, logs_errors=True), connector("lines", "source", 1)]
    made = metrics(FixedFacts(running))
    made.batch("orders", BATCH)
    made.batch("lines", BatchRecord("s1", T0, Outcome.COMMITTED, 1.0, read=7, written=7, bytes=70))
    made.started(2, is_success=True)
    made.started(1, is_success=False)
    made.rebalanced(1.5)
    return made


def test_a_says_what_strimzi_says(busy: ConnectMetrics) -> None:
    found = series(busy)

    assert value(found, "kafka_connect_worker_connector_count") == 2
    assert value(found, "kafka_connect_worker_task_count") == 3
    assert value(found, "kafka_connect_worker_connector_startup_attempts_total") == 2
    assert value(found, "kafka_connect_worker_task_startup_success_percentage") == pytest.approx(2 / 3)
    assert value(found, "kafka_connect_worker_connector_running_task_count", connector="orders") == 2
    assert value(found, "kafka_connect_worker_rebalance_completed_rebalances_total") == 1
    leader = {"leader_name": "http://leader:8083/"}
    assert value(found, "kafka_connect_worker_rebalance_leader_name", **leader) == 1
    client = {"clientid": "connect-here:8083"}
    assert value(found, "kafka_connect_coordinator_assigned_tasks", **client) == 3
    assert value(found, "kafka_connect_connection_count", **client) == 2
    assert value(found, "kafka_connect_start_time_seconds", **client) == (T0 - 60_000) / 1000
    assert value(found, "kafka_connect_connector_status", connector="orders", status="running") == 1
    task = {"connector": "orders", "task": "0"}
    assert value(found, "kafka_connect_connector_task_status", **task, status="running") == 1
    assert value(found, "kafka_connect_sink_task_sink_record_read_total", **task) == 100
    assert value(found, "kafka_connect_sink_task_put_batch_max_time_ms", **task) == 2500
    assert value(found, "kafka_connect_connector_task_offset_commit_avg_time_ms", **task) == 750
    assert value(found, "kafka_connect_task_error_total_records_skipped", **task) == 6
    source = {"connector": "lines", "task": "0"}
    assert value(found, "kafka_connect_source_task_source_record_write_total", **source) == 7
    consumer = {"clientid": "connector-consumer-orders-0"}
    assert value(found, "kafka_consumer_incoming_byte_total", **consumer) == 5000


def test_b_and_c_say_what_confluent_and_the_metrics_reporter_say(busy: ConnectMetrics) -> None:
    found = series(busy)

    worker, rebalances = (
        "kafka_connect_connect_worker_metrics",
        "kafka_connect_connect_worker_rebalance_metrics",
    )
    assert value(found, f"{worker}_connector_count", connector="aggregate") == 2
    for ending in ("", "_total"):
        assert value(found, f"{worker}_task_startup_failure{ending}", connector="aggregate") == 1
        assert value(found, f"{rebalances}_completed_rebalances{ending}") == 1
    assert value(found, f"{worker}_connector_running_task_count", connector="orders") == 2
    for name in ("kafka_connect_app", "kafka_connect_app_info"):
        for label, text in (("version", "4.3.1-icestream"), ("start_time_ms", str(T0 - 60_000))):
            assert value(found, name, client_id="connect-here:8083", **{label: text}) == 1
    connector_metrics = "kafka_connect_connector_metrics"
    assert value(found, connector_metrics, connector="orders", status="running") == 1
    assert value(found, connector_metrics, connector="orders", connector_type="sink") == 1
    assert value(found, f"{connector_metrics}_status_info", connector="orders", status="running") == 1
    task = {"connector": "orders", "task": "0"}
    task_metrics = "kafka_connect_connector_task_metrics"
    assert value(found, f"{task_metrics}_status_info", **task, status="running") == 1
    assert value(found, f"{task_metrics}_offset_commit_success_percentage", **task) == 1
    assert value(found, "kafka_connect_task_error_metrics_deadletterqueue_produce_requests", **task) == 6
    client = {"client_type": "consumer", "client_id": "connector-consumer-orders-0"}
    for ending in ("", "_total"):
        assert value(found, f"kafka_consumer_consumer_metrics_incoming_byte{ending}", **client) == 5000
        assert value(found, f"kafka_connect_sink_task_metrics_sink_record_send{ending}", **task) == 90


def test_counts_of_the_job_stand_on_its_first_task_and_times_on_all(busy: ConnectMetrics) -> None:
    found = series(busy)

    def of_tasks(name: str) -> list[float]:
        return [value(found, f"kafka_connect_{name}", connector="orders", task=task) for task in "01"]

    assert of_tasks("sink_task_sink_record_read_rate") == [100 / 30, 0]
    assert of_tasks("task_error_total_record_errors") == [6, 0]
    assert of_tasks("sink_task_partition_count") == [2, 1]
    assert of_tasks("connector_task_running_ratio") == [1, 1]
    assert of_tasks("sink_task_put_batch_avg_time_ms") == [2500, 2500]


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING])
def test_only_the_present_status_is_there(state: State) -> None:
    found = series(metrics(FixedFacts([connector(state=state)])))

    for name in ("kafka_connect_connector_status", "kafka_connect_connector_metrics_status_info"):
        assert [dict(labels)["status"] for one, labels in found if one == name] == [state.lower()]


def test_a_stopped_connector_has_a_status_and_no_tasks() -> None:
    found = series(metrics(FixedFacts([connector(state=State.STOPPED, tasks=0)])))

    assert value(found, "kafka_connect_connector_status", connector="orders", status="stopped") == 1
    assert not [name for name, labels in found if "task" in dict(labels)]
    assert not [name for name, _ in found if name == "kafka_connect_worker_connector_total_task_count"]


def test_without_batches_averages_are_no_numbers_and_rates_are_zero() -> None:
    found = series(metrics(FixedFacts()))
    task = {"connector": "orders", "task": "0"}

    assert math.isnan(value(found, "kafka_connect_sink_task_put_batch_avg_time_ms", **task))
    assert math.isnan(value(found, "kafka_connect_connector_task_metrics_batch_size_max", **task))
    assert value(found, "kafka_connect_sink_task_sink_record_read_rate", **task) == 0
    assert value(found, "kafka_connect_worker_rebalance_time_since_last_rebalance_ms") == math.inf


def test_strimzi_s_rules_leave_out_what_they_leave_out() -> None:
    known = names(strimzi_shapes)

    assert not [name for name in known if name.endswith("_percentage") and "_startup_" not in name]
    assert "kafka_connect_source_task_transaction_size_min" not in known
    assert "kafka_connect_connector_task_connector_class" not in known
    assert "kafka_connect_request_rate" not in known
    assert "kafka_connect_coordinator_heartbeat_total" in known


def test_the_dialects_share_no_name() -> None:
    assert not names(strimzi_shapes) & names(confluent_shapes)


def test_the_config_chooses_the_dialects() -> None:
    found = {dialect: series(metrics(FixedFacts(), dialect)) for dialect in DIALECTS}

    assert not set(found["strimzi"]) & set(found["confluent"])
    assert set(found["strimzi"]) | set(found["confluent"]) == set(series(metrics(FixedFacts())))
    assert list(ConnectMetrics(FixedFacts(), ()).collect()) == []


def test_series_of_a_connector_are_gone_with_it() -> None:
    facts = FixedFacts([connector("gone"), connector("stays")])
    made = metrics(facts)
    made.batch("gone", BATCH)
    assert any(dict(labels).get("connector") == "gone" for _, labels in series(made))

    facts.running = [connector("stays")]
    assert not [key for key in series(made) if "gone" in str(key)]

    # And if it comes back, it begins anew.
    made.forget("gone")
    facts.running = [connector("gone")]
    read = "kafka_connect_sink_task_sink_record_read_total"
    assert value(series(made), read, connector="gone", task="0") == 0


def test_two_hundred_connectors_of_ten_topics_stay_within_the_budget() -> None:
    """Series depend on tasks, not on topics or partitions."""
    facts = FixedFacts([connector(f"c{number}", tasks=1, lags=()) for number in range(200)])
    few = len(series(metrics(facts)))
    wide = [connector(f"c{number}", tasks=1) for number in range(200)]
    assert len(series(metrics(FixedFacts(wide)))) == few
    assert few <= 200 * 125 + 100

    facts.running = []
    assert len(series(metrics(facts))) <= 100


def test_a_batch_under_way_is_active_until_it_ends() -> None:
    made = metrics(FixedFacts())
    active = "kafka_connect_sink_task_sink_record_active_count"
    made.batch("orders", BatchRecord("b1", T0, Outcome.UNDER_WAY, read=100))
    assert value(series(made), active, connector="orders", task="0") == 100
    made.batch("orders", BATCH)
    assert value(series(made), active, connector="orders", task="0") == 0
    assert value(series(made), f"{active}_max", connector="orders", task="0") == 100


def test_batches_that_did_not_land_count_as_what_they_are() -> None:
    made = metrics(FixedFacts())
    for number, outcome in enumerate(
        (Outcome.CONFLICT, Outcome.RUN_AGAIN, Outcome.UNAVAILABLE, Outcome.UNKNOWN, Outcome.CANCELLED)
    ):
        made.batch("orders", BatchRecord(str(number), T0, outcome, read=10))
    found = series(made)

    def of(name: str) -> float:
        return value(found, f"kafka_connect_{name}", connector="orders", task="0")

    assert of("sink_task_sink_record_read_total") == 0
    assert of("sink_task_offset_commit_skip_total") == 1
    assert of("task_error_total_retries") == 2
    assert of("sink_task_offset_commit_seq_no") == 2
    assert of("connector_task_metrics_offset_commit_failure_percentage") == 1


def test_both_formats_are_taken_by_their_parsers(busy: ConnectMetrics) -> None:
    text = exposition.generate_latest(registry(busy)).decode()
    assert len(list(parser.text_string_to_metric_families(text))) > 200
    promtool = require_program("promtool")
    plain = generate_latest(registry(busy))
    checked = subprocess.run([promtool, "check", "metrics"], input=plain, capture_output=True, timeout=60)
    # 3: it dislikes Kafka's names (`_ms`, `_count`, a gauge `_total`); 1 would be: it cannot read them.
    assert checked.returncode in (0, 3), checked.stderr.decode()


def test_names_that_users_chose_stay_one_label() -> None:
    hostile = 'a"} 1\nkafka_connect_worker_connector_count{x="\\'
    text = exposition.generate_latest(registry(metrics(FixedFacts([connector(hostile)])))).decode()
    read = parser.text_string_to_metric_families(text)

    shown = {sample.labels.get("connector") for family in read for sample in family.samples}
    assert shown == {None, hostile, "aggregate"}
