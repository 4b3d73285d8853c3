"""`icestream job-manager`: one job in a process of its own, by environment variables."""

from __future__ import annotations

import os

import click


@click.command(
    epilog="\b\nExample:\n"
    "  export KAFKA_BOOTSTRAP_SERVERS=kafka:9092 CONNECT_GROUP_ID=connect-orders\n"
    "  export CONTROL_TOPIC=control CATALOG_NAME=lake CATALOG_TYPE=rest CATALOG_URI=http://catalog:8181\n"
    "  icestream job-manager\n\n"
    "\b\nExit codes:\n  0    told to stop\n  1    the job failed, or a variable is missing\n"
    "  130  told twice",
    short_help="Run one job on its own.",
)
@click.option("--channel", type=int, hidden=True, help="The socket of the worker that started it.")
def job_manager(channel: int | None) -> None:
    """Coordinate the commits of a connector whose tasks run on workers of Kafka Connect.

    Environment variables configure it; docs/job-manager.md has all of them. /live, /ready and /metrics are
    at HTTP_HOST and HTTP_PORT. Ctrl-C or SIGTERM ends it after the commit under way; a second Ctrl-C ends it
    at once.
    """
    if channel is not None:
        from icestream.jobs.processes.job_process import serve_worker

        return serve_worker(channel)
    from icestream.cli.environment_job import parse_environment, run_job

    run_job(*parse_environment(os.environ))
