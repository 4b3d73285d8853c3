"""`icestream verify`: do the books of a connector balance?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icestream.api.errors import PreconditionError, RetriableError
from icestream.cli.kafka_access import known, reaches_kafka
from icestream.cli.worker_options import talks_to_a_worker

if TYPE_CHECKING:
    from icestream.client import ConnectClient


@click.command(
    epilog="""\b
Examples:
  icestream verify iceberg-sink-apilogs
  icestream verify iceberg-sink-apilogs --deep --bootstrap-servers localhost:9092
  icestream verify iceberg-sink-apilogs --worker worker.properties"""
)
@click.argument("connector")
@click.option(
    "--deep", is_flag=True, help="Also compare the origin of every row, from the data files themselves."
)
@reaches_kafka
@talks_to_a_worker
def verify(
    client: ConnectClient,
    connector: str,
    deep: bool,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
) -> None:
    """Check that nothing of CONNECTOR's topics is missing from its table and nothing is in it twice.

    Exits with 1 if something is, and says which offsets. Exits with 0 if nothing is known to be wrong; what
    cannot be known, because retention, compaction or others removed it, or because a batch is under way, is
    said and is no failure.
    """
    from icestream import logs

    logs.configure("ERROR")
    found, given = known(client, connector, config, bootstrap_servers, worker)
    try:
        are_good = holds(connector, found, given, deep=deep)
    except RetriableError as error:
        raise PreconditionError(
            f"{error}; nothing was compared: try again once it answers, or name another Kafka with "
            "--bootstrap-servers or --worker"
        ) from error
    if not are_good:
        raise SystemExit(1)


def holds(connector: str, config: Mapping[str, str], worker: Mapping[str, str], *, deep: bool) -> bool:
    """Print what is found of every target of a connector; whether all are good."""
    from icestream.jobs.audits.verdicts import verdicts

    found = verdicts(connector, config, worker, deep=deep)
    for verdict in found:
        click.echo(f"{connector} → {verdict.target}: {verdict.line}")
        for problem in verdict.problems:
            click.echo(f"  {problem}", err=True)
        for unknown in verdict.unknown:
            click.echo(f"  {unknown}")
    return all(verdict.holds for verdict in found)
