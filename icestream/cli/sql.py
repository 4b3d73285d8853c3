"""`icestream sql`: Spark SQL over the catalogs of connectors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icestream.api.config import Config
from icestream.api.errors import NotFoundError, PreconditionError
from icestream.cli.worker_options import output_option, talks_to_a_worker

if TYPE_CHECKING:
    from rich.table import Table

    from icestream.client import ConnectClient
    from icestream.pipeline.sql import Result


@click.command(
    epilog="\b\nExample:\n"
    '  icestream sql "SELECT bucket, count(*) FROM streaming.apilogs GROUP BY bucket"\n'
    '  icestream sql --config sink.json -o json "SHOW TABLES IN demo.streaming; SELECT 1"',
    short_help="Spark SQL over the tables.",
)
@click.argument("statements", metavar="STATEMENT[;STATEMENT...]")
@click.option(
    "--config",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A connector's .json or .properties; may be given again.  [default: the worker's connectors]",
)
@click.option(
    "--spark", "settings", multiple=True, metavar="KEY=VALUE", help="A spark.* setting; may be given again."
)
@output_option
@talks_to_a_worker
def sql(
    client: ConnectClient, statements: str, files: tuple[Path, ...], settings: tuple[str, ...], output: str
) -> None:
    """Run Spark SQL over the catalogs that connectors write to.

    A catalog has the name that the connector gives it ('iceberg.catalog'); if there is only one, its name
    may be left out.
    """
    spark_conf = _spark_conf(settings)
    configs = _from_files(files) if files else _from_worker(client)
    for result in results(configs, statements, spark_conf):
        if output == "json":
            click.echo(json.dumps({"statement": result.statement, "rows": as_records(result)}, default=str))
        else:
            _print(result)


def jar_settings(configs: Sequence[Config]) -> dict[str, str]:
    """Spark's settings for the jars of these configs' catalogs; those that we know are downloaded once."""
    from icestream.embedded.jars import fetch_files, set_of
    from icestream.pipeline.sql import jars_for

    names = {coordinate: set_of(coordinate) for coordinate in jars_for(configs)}
    files = fetch_files([name for name in names.values() if name])
    settings = {"spark.jars": ",".join(map(str, files))}
    # Of a connector that another package brings: Spark fetches them.
    if others := [coordinate for coordinate, name in names.items() if not name]:
        settings["spark.jars.packages"] = ",".join(others)
    return settings


def as_records(result: Result) -> list[dict[str, Any]]:
    return [dict(zip(result.columns, map(_plain, row), strict=True)) for row in result.rows]


def result_table(result: Result) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(result.columns):
        numbers = all(isinstance(row[position], int | float | None) for row in result.rows)
        table.add_column(Text(name), justify="right" if numbers and result.rows else "left")
    for row in result.rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def results(configs: Sequence[Config], statements: str, spark_conf: dict[str, str]) -> Iterator[Result]:
    """Run statements in this process's Spark session, with all that has to be there first."""
    from icestream.embedded.home import home
    from icestream.embedded.java import java
    from icestream.pipeline.sql import open_sql_session, run_statements, split_statements

    several = split_statements(statements)
    if not several:
        raise click.UsageError("there is no statement to run")
    java()
    jars = jar_settings(configs)
    with _stderr_to(home() / "sql.log"):
        spark = open_sql_session(configs, {**jars, **spark_conf})
    yield from run_statements(spark, several)


def _from_files(files: Sequence[Path]) -> list[Config]:
    from icestream.cluster.configs.properties import read_connector

    configs: list[Config] = []
    for path in files:
        configs.append(read_connector(path).config)
        if not _has_catalog(configs[-1]):
            raise PreconditionError(f"the connector of {path} has no catalog that Spark SQL could read")
    return configs


def _from_worker(client: ConnectClient) -> Sequence[Config]:
    configs = [client.config(name) for name in client.names()]
    found = [config for config in configs if _has_catalog(config)]
    if not found:
        raise PreconditionError(
            f"no connector at {client.url} has a catalog; name a connector's file with --config"
        )
    return found


def _has_catalog(config: Config) -> bool:
    from icestream.plugins import find_connector

    try:
        return find_connector(config.get("connector.class", "")).plugin.spark_catalog(config) is not None
    except NotFoundError:
        return False


def _spark_conf(settings: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.BadParameter(f"'{setting}' is not of the form spark.key=value", param_hint="--spark")
        pairs[key] = value
    return pairs


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """A JVM that starts in this block keeps writing its warnings to the log, not between the user's rows."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _print(result: Result) -> None:
    from rich.console import Console

    if result.columns:
        # A pipe has no width: lines must not be broken for whoever reads them.
        console = Console() if sys.stdout.isatty() else Console(width=100_000)
        console.print(result_table(result))
        click.echo(f"{len(result.rows):,} row{'' if len(result.rows) == 1 else 's'}\n")
    else:
        click.echo("done\n")


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(_plain(value), default=str).strip('"')


def _plain(value: object) -> Any:
    """Spark's rows, bytes and decimals as JSON has them; what is left is shown as text."""
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", None)
        return (
            dict(zip(names, map(_plain, value), strict=True)) if names else [_plain(item) for item in value]
        )
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value
