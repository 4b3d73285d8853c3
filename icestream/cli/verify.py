"""`icestream verify`: do the books of a connector balance?"""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  icestream verify iceberg-sink-apilogs
  icestream verify iceberg-sink-apilogs --deep --bootstrap-servers localhost:9092"""
)
@click.argument("connector")
@click.option(
    "--deep", is_flag=True, help="Also compare the origin of every row, from the data files themselves."
)
@click.option(
    "--url", envvar="ICESTREAM_URL", default="http://localhost:8083", show_default=True, help="REST address."
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The connector's file, instead of asking the worker.",
)
@click.option(
    "--bootstrap-servers",
    envvar="ICESTREAM_BOOTSTRAP_SERVERS",
    default="localhost:9092",
    show_default=True,
    help="Kafka's address.",
)
def verify(connector: str, deep: bool, url: str, config: Path | None, bootstrap_servers: str) -> None:
    """Check that nothing of CONNECTOR's topics is missing from its table and nothing is in it twice.

    Exits with 1 if something is, and says which offsets.
    """
    from icestream import logs

    logs.configure("ERROR")
    if not holds(connector, _config(connector, url, config), bootstrap_servers, deep=deep):
        raise SystemExit(1)


def _config(connector: str, url: str, file: Path | None) -> dict[str, str]:
    if file is not None:
        from icestream.cluster.properties import read_connector

        return dict(read_connector(file).config)
    from icestream.client import ConnectClient

    with ConnectClient(url) as client:
        return client.config(connector)


def holds(connector: str, config: dict[str, str], bootstrap: str, *, deep: bool) -> bool:
    """Print the verdict on every table of a connector; whether all are good."""
    from icestream.jobs.accounts import judge
    from icestream.jobs.evidence import gather

    worker = {"bootstrap.servers": bootstrap}
    good = True
    for table, evidence in gather(connector, config, worker, deep=deep):
        verdict = judge(evidence)
        click.echo(f"{connector} → {table}: {verdict.line}")
        for problem in verdict.problems:
            click.echo(f"  {problem}", err=True)
        if deep and evidence.deep and evidence.deep.foreign_rows:
            click.echo(
                f"  {evidence.deep.foreign_rows:,} rows are in files that another engine wrote: counted only"
            )
        good = good and verdict.holds
    return good
