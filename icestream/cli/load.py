"""`icestream load`: fill a topic with realistic MinIO logs."""

from __future__ import annotations

from datetime import UTC, datetime

import click

_KINDS = ("api", "error", "audit")


@click.command(
    epilog="\b\nExample:\n  icestream load --topic apilogs --records 100000 --bad 5\n"
    "  icestream load --topic auditlogs --kind audit --records 5000 --rate 500"
)
@click.option("--topic", required=True, help="Topic to write to; made with 3 partitions if it is missing.")
@click.option(
    "--records", required=True, type=click.IntRange(min=0), help="How many, the broken ones included."
)
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Records a second.  [default: no limit]"
)
@click.option(
    "--kind", type=click.Choice(_KINDS), default="api", show_default=True, help="Which of MinIO's logs."
)
@click.option("--bad", type=click.IntRange(min=0), default=0, show_default=True, help="How many are broken.")
@click.option("--bootstrap-servers", default="localhost:9092", show_default=True, help="Where Kafka is.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same records.")
@click.option(
    "--start", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the first record."
)
@click.option(
    "--until",
    type=click.DateTime(),
    help="Where the times of the records end, in UTC.  [default: 2026-11-01, so that runs are alike]",
)
def load(
    topic: str,
    records: int,
    rate: float | None,
    kind: str,
    bad: int,
    bootstrap_servers: str,
    seed: int,
    start: int,
    until: datetime | None,
) -> None:
    """Write MinIO logs to a topic, each record with an id of its own."""
    from rich.console import Console
    from rich.progress import Progress

    from icestream.embedded.loadgen import produce
    from icestream.embedded.minio_logs import BASE
    from icestream.embedded.topics import ensure_topic

    if bad > records:
        raise click.BadParameter(f"{bad} of {records} records cannot be broken", param_hint="--bad")
    ensure_topic(bootstrap_servers, topic)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(topic, total=records)
        report = produce(
            bootstrap_servers,
            topic,
            kind,
            records,
            rate,
            bad,
            seed,
            lambda done: progress.update(task, completed=done),
            start=start,
            base=until.replace(tzinfo=UTC) if until else BASE,
        )
    click.echo(
        f"{report.sent:,} records in '{topic}', {report.bad:,} of them broken:"
        f" {report.seconds:.1f} s, {report.rate:,.0f} records/s"
    )
