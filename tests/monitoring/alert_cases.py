"""For each alert that we ship: what makes it fire, and what looks like it and does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OURS: Final = 'job="icestream", instance="w:9404", connector="orders"'

Series = dict[str, str]
"""Names with labels → values minute by minute, in promtool's words (`0+60x30`)."""


@dataclass(frozen=True)
class Case:
    fires: Series
    quiet: Series
    at: str
    """When it is asked, after what the alert waits for."""


def _job(**metrics: str) -> Series:
    return {f"icestream_{name}{{{OURS}}}": values for name, values in metrics.items()}


def _of(name: str, label: str, values: str) -> Series:
    return {f"icestream_{name}{{{OURS}, {label}}}": values}


_RUNNING: Final = _of("job_state", 'state="running"', "1x600")
_BALANCED: Final = {
    **_job(records_read_total="0+10x60", records_written_total="0+7x60"),
    **_of("records_rejected_total", 'stage="VALUE_CONVERTER"', "0+2x60"),
}

CASES: Final = {
    "ConnectContainersDown": Case(
        {"up": "1x20"},
        {'container_last_seen{container="a-connect", pod="a-connect-0"}': "1x20"},
        "10m",
    ),
    "ConnectFailedConnector": Case(
        {'kafka_connect_connector_status{connector="a", status="failed", pod="p", namespace="n"}': "1x20"},
        {'kafka_connect_connector_status{connector="a", status="running", pod="p", namespace="n"}': "1x20"},
        "10m",
    ),
    "ConnectFailedTask": Case(
        {'kafka_connect_worker_connector_failed_task_count{connector="a", pod="p", namespace="n"}': "2x20"},
        {'kafka_connect_worker_connector_failed_task_count{connector="a", pod="p", namespace="n"}': "0x20"},
        "10m",
    ),
    "Failed connector task": Case(
        {'kafka_connect_connect_worker_metrics_connector_failed_task_count{connector="a"}': "1x20"},
        {'kafka_connect_connect_worker_metrics_connector_failed_task_count{connector="a"}': "0x20"},
        "5m",
    ),
    "IcestreamNoCommit": Case(
        {**_job(commit_last_success_timestamp_seconds="0x60", lag_records_max="5x60"), **_RUNNING},
        # Nothing to commit; and one that somebody paused has records that wait.
        {
            **_job(commit_last_success_timestamp_seconds="0x60", lag_records_max="0x60"),
            **_RUNNING,
            'icestream_commit_last_success_timestamp_seconds{job="i", instance="w", connector="p"}': "0x60",
            'icestream_lag_records_max{job="i", instance="w", connector="p"}': "5x60",
            'icestream_job_state{job="i", instance="w", connector="p", state="running"}': "0x60",
        },
        "30m",
    ),
    "IcestreamLagGrows": Case(
        _job(lag_seconds="0+60x90"),
        # A large lag that shrinks.
        _job(lag_seconds="9000-60x90"),
        "60m",
    ),
    "IcestreamRejecting": Case(
        {
            **_job(records_read_total="0+100x60"),
            **_of("records_rejected_total", 'stage="VALUE_CONVERTER"', "0+2x60"),
        },
        {
            **_job(records_read_total="0+1000x60"),
            **_of("records_rejected_total", 'stage="VALUE_CONVERTER"', "0+2x60"),
        },
        "40m",
    ),
    "IcestreamBooksDoNotBalance": Case(
        _BALANCED,
        {
            **_BALANCED,
            **_of("records_filtered_total", 'transform="drop"', "0+1x60"),
            # One without a transform.
            'icestream_records_read_total{job="i", instance="w", connector="p"}': "0+5x60",
            'icestream_records_written_total{job="i", instance="w", connector="p"}': "0+5x60",
            'icestream_records_rejected_total{job="i", instance="w", connector="p", stage="x"}': "0x60",
        },
        "40m",
    ),
    "IcestreamUnknownCommits": Case(
        _of("commits_total", 'outcome="unknown"', "0x5 1x20"),
        {
            **_of("commits_total", 'outcome="unknown"', "3x30"),
            **_of("commits_total", 'outcome="landed"', "0+1x30"),
        },
        "20m",
    ),
    "IcestreamFenced": Case(
        _job(fenced_total="0x5 3x20"),
        # Once, as whoever takes over does it.
        _job(fenced_total="0x5 1x20"),
        "15m",
    ),
    "IcestreamCircuitOpen": Case(
        _of("circuit_breaker_state", 'target="catalog", state="open"', "1x20"),
        {
            **_of("circuit_breaker_state", 'target="catalog", state="open"', "0x5 1x2 0x20"),
            **_of("circuit_breaker_state", 'target="catalog", state="closed"', "1x20"),
        },
        "10m",
    ),
    "IcestreamRestartLoop": Case(
        _job(restarts_total="0+1x30"),
        _job(restarts_total="0x5 2x30"),
        "25m",
    ),
    "IcestreamDeadLettersFail": Case(
        {'kafka_connect_task_error_deadletterqueue_produce_failures{connector="a", task="0"}': "0x5 2x20"},
        {'kafka_connect_task_error_deadletterqueue_produce_failures{connector="a", task="0"}': "2x30"},
        "15m",
    ),
    "IcestreamSmallFiles": Case(
        _job(file_bytes_total="0+1000x600", files_written_total="0+1x600"),
        {
            **_job(file_bytes_total="0+100000000x600", files_written_total="0+1x600"),
            # One that writes nothing has no files, neither small nor large.
            'icestream_file_bytes_total{job="i", instance="w", connector="p"}': "5x600",
            'icestream_files_written_total{job="i", instance="w", connector="p"}': "5x600",
        },
        "9h",
    ),
    "IcestreamSlowCommits": Case(
        {
            **_of("commit_duration_seconds_bucket", 'le="30"', "0x60"),
            **_of("commit_duration_seconds_bucket", 'le="60"', "0+1x60"),
            **_of("commit_duration_seconds_bucket", 'le="+Inf"', "0+1x60"),
        },
        {
            **_of("commit_duration_seconds_bucket", 'le="1"', "0+1x60"),
            **_of("commit_duration_seconds_bucket", 'le="+Inf"', "0+1x60"),
        },
        "45m",
    ),
    "IcestreamMaintenanceFails": Case(
        _of("maintenance_runs_total", 'outcome="failed"', "0x60 1x60 2x60 4x60"),
        {
            **_of("maintenance_runs_total", 'outcome="failed"', "0x60 1x180"),
            **_of("maintenance_runs_total", 'outcome="done"', "0+1x240"),
        },
        "220m",
    ),
    "IcestreamWorkerDown": Case(
        {'up{job="icestream", instance="w:9404"}': "1x2 0x20"},
        {'up{job="icestream", instance="w:9404"}': "1x20", 'up{job="another"}': "0x20"},
        "10m",
    ),
    "IcestreamWorkerUnhealthy": Case(
        {'icestream_worker_healthy{instance="w:9404"}': "0x20"},
        {'icestream_worker_healthy{instance="w:9404"}': "1x3 0x2 1x20"},
        "10m",
    ),
    "IcestreamSparkDown": Case(
        {'icestream_spark_up{instance="w:9404"}': "0x20"},
        {'icestream_spark_up{instance="w:9404"}': "1x20"},
        "10m",
    ),
    "IcestreamNoLeader": Case(
        {f'icestream_group_leader{{job="icestream", instance="w{number}"}}': "0x20" for number in (1, 2)},
        {
            f'icestream_group_leader{{job="icestream", instance="w{number}"}}': f"{number - 1}x20"
            for number in (1, 2)
        },
        "10m",
    ),
    "IcestreamOpenFiles": Case(
        {
            'process_open_fds{job="icestream", instance="w"}': "900x30",
            'process_max_fds{job="icestream", instance="w"}': "1000x30",
            'icestream_info{job="icestream", instance="w", version="1"}': "1x30",
        },
        # Somebody else's process.
        {
            'process_open_fds{job="other", instance="o"}': "900x30",
            'process_max_fds{job="other", instance="o"}': "1000x30",
        },
        "20m",
    ),
    "IcestreamScrapeErrors": Case(
        {'icestream_scrape_errors_total{instance="w"}': "0x5 1x20"},
        {'icestream_scrape_errors_total{instance="w"}': "1x30"},
        "10m",
    ),
}
