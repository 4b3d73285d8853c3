"""`icestream stack`: MinIO, Kafka, our worker and Trino, as processes on this machine or by compose."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icestream.api.errors import IcestreamError, PreconditionError

if TYPE_CHECKING:
    from icestream.stack.backend import Backend, Endpoints
    from icestream.stack.processes import Wishes
    from icestream.stack.settings import Settings

_LAND_S = 300.0

_env_file = click.option(
    "--env-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with the stack's variables.  [default: .env here, if there is one]",
)
_kind = click.option(
    "--backend",
    "kind",
    type=click.Choice(["processes", "compose"]),
    help="Processes here, or containers.  [default: $ICESTREAM_STACK; what runs; containers where Docker"
    " answers and MINIO_LICENSE is set; processes]",
)


@click.group(
    epilog="\b\nExample:\n  icestream stack start --load 1000\n"
    '  icestream stack sql "SELECT count(*) FROM kafkawarehouse.streaming.apilogs"\n'
    "  icestream stack status\n  icestream stack stop"
)
def stack() -> None:
    """Two MinIO clusters, Kafka, a catalog, a worker with three connectors, and Trino, on this machine."""


@stack.command(
    epilog="\b\nExample:\n  icestream stack start --load 1000\n  TRINO_PORT=8888 icestream stack start"
)
@_env_file
@_kind
@click.option(
    "--load", "records", type=click.IntRange(min=1), help="Send so many records of each log at the end."
)
@click.option("--no-trino", is_flag=True, help="Leave Trino out; `icestream sql` asks Spark.")
@click.option(
    "--build-minio", is_flag=True, help="Build MinIO with Go where there is none: about ten minutes."
)
@click.option("--moto", is_flag=True, help="Let moto stand in for MinIO even where MinIO is.")
@click.option(
    "--audit", is_flag=True, help="Community MinIO sends its audit records, of an older form, to the topic."
)
def start(
    env_file: Path | None,
    kind: str | None,
    records: int | None,
    no_trino: bool,
    build_minio: bool,
    moto: bool,
    audit: bool,
) -> None:
    """Start everything, make topics, tables and connectors, and show the queries' answers.

    Ports are those of the variables, or free ones where they are taken.
    """
    from icestream.stack.processes import Wishes

    settings = _settings(env_file)
    backend = _backend(settings, kind, Wishes(not no_trino, build_minio, audit, moto))
    began = time.monotonic()
    ran_before = backend.endpoints() is not None
    endpoints = backend.start(_say)
    try:
        _initialise(backend, settings, endpoints)
    except BaseException:
        if not ran_before:
            backend.stop(_say)
        raise
    _show(settings, endpoints)
    if records:
        _load(settings, endpoints, records)
    _queries(settings, endpoints)
    click.echo(f"ready after {time.monotonic() - began:.0f} s; end it with: icestream stack stop")


@stack.command(epilog="\b\nExample:\n  icestream stack stop")
@_env_file
@_kind
def stop(env_file: Path | None, kind: str | None) -> None:
    """Stop everything; the data stays."""
    stopped = _backend(_settings(env_file), kind).stop(_say)
    click.echo("the stack is stopped; its data stays" if stopped else "the stack does not run")


@stack.command(epilog="\b\nExample:\n  icestream stack clean --yes")
@_env_file
@_kind
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean(env_file: Path | None, kind: str | None, yes: bool) -> None:
    """Stop everything and remove its data and its logs."""
    if not yes:
        click.confirm("Remove all data of the stack?", abort=True)
    _backend(_settings(env_file), kind).clean(_say)


@stack.command(epilog="\b\nExample:\n  icestream stack status")
@_env_file
@_kind
def status(env_file: Path | None, kind: str | None) -> None:
    """Show every part, whether it runs and whether it is well; exit code 1 if one is not."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    parts = _backend(_settings(env_file), kind).status()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("PART", "STATE", "HEALTH", "ADDRESS", "NOTE"):
        table.add_column(title)
    for part in parts:
        table.add_row(*map(Text, (part.name, part.state, part.health, part.address, part.note)))
    console = Console()
    (console if console.is_terminal else Console(width=400)).print(table)
    unwell = [part.name for part in parts if part.state != "absent" and not part.is_well]
    if not any(part.state == "running" for part in parts):
        raise IcestreamError("the stack does not run; start it with: icestream stack start")
    if unwell:
        raise IcestreamError(
            f"not well: {', '.join(unwell)}; start what is missing with `icestream stack start`"
        )


@stack.command(epilog="\b\nExample:\n  icestream stack logs -f kafka-connect")
@_env_file
@_kind
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.argument("part", required=False)
def logs(env_file: Path | None, kind: str | None, follow: bool, part: str | None) -> None:
    """Show the log of PART, or of all."""
    _backend(_settings(env_file), kind).logs(part, follow, click.echo)


@stack.command(epilog='\b\nExample:\n  icestream stack sql "SHOW TABLES FROM kafkawarehouse.streaming"')
@_env_file
@_kind
@click.argument("statements", metavar="STATEMENT[;STATEMENT...]")
def sql(env_file: Path | None, kind: str | None, statements: str) -> None:
    """Ask the stack's Trino."""
    from icestream.pipeline.sql import split_statements

    settings = _settings(env_file)
    endpoints = _running(_backend(settings, kind))
    if endpoints.trino is None:
        raise PreconditionError(
            f"the stack runs without Trino; ask Spark: icestream sql --url {endpoints.worker} '…'"
        )
    for statement in split_statements(statements):
        _ask(endpoints.trino, statement)


@stack.command(epilog="\b\nExample:\n  icestream stack init --bootstrap-servers kafka:29092")
@_env_file
@click.option(
    "--bootstrap-servers", envvar="KAFKA_BOOTSTRAP_SERVERS", default="kafka:29092", show_default=True
)
@click.option("--worker", envvar="CONNECT_URL", default="http://kafka-connect:8083", show_default=True)
@click.option("--source", envvar="SOURCE_URL", default="http://nginx-source:9000", show_default=True)
@click.option("--destination", envvar="DEST_URL", default="http://nginx-dest:9000", show_default=True)
@click.option("--trino", envvar="TRINO_URL", default="http://trino:8080", show_default=True)
def init(
    env_file: Path | None, bootstrap_servers: str, worker: str, source: str, destination: str, trino: str
) -> None:
    """Do the nine steps in a stack that others have started: the init container's command."""
    from icestream.stack.backend import Endpoints
    from icestream.stack.steps import steps

    endpoints = Endpoints(
        bootstrap_servers, worker, source, destination, f"{destination}/_iceberg", trino or None
    )
    _run_steps(steps(_settings(env_file), endpoints, patience_s=600.0))


def _settings(env_file: Path | None) -> Settings:
    from icestream.stack.settings import settings_from

    here = Path(".env")
    return settings_from(file=env_file or (here if here.is_file() else None))


def _backend(settings: Settings, kind: str | None, wishes: Wishes | None = None) -> Backend:
    from icestream.stack.choice import VARIABLE, compose_backend
    from icestream.stack.processes import ProcessBackend

    processes = ProcessBackend(settings, wishes)
    asked = {**os.environ, VARIABLE: kind} if kind else os.environ
    # Without a word on it, what runs already is meant.
    if not asked.get(VARIABLE) and processes.endpoints():
        return processes
    return compose_backend(settings, asked) or processes


def _initialise(backend: Backend, settings: Settings, endpoints: Endpoints) -> None:
    from icestream.stack.compose import ComposeBackend
    from icestream.stack.steps import steps

    if isinstance(backend, ComposeBackend):
        # Its parts know each other by other addresses than this machine: the steps run among them.
        backend.initialise(_say)
    else:
        _run_steps(steps(settings, endpoints))


def _running(backend: Backend) -> Endpoints:
    endpoints = backend.endpoints()
    if endpoints is None:
        raise PreconditionError("the stack does not run; start it with: icestream stack start")
    return endpoints


def _say(line: str) -> None:
    click.echo(line, err=True)


def _run_steps(todo: list[Any]) -> None:
    for number, step in enumerate(todo, 1):
        click.echo(f"[{number}/{len(todo)}] {step.title}: ", nl=False)
        try:
            click.echo(step.run())
        except BaseException:
            click.echo("failed")
            raise


def _show(settings: Settings, endpoints: Endpoints) -> None:
    from icestream.stack.plan import moved_ports

    lines = {
        "Kafka": endpoints.bootstrap,
        "Kafka Connect": f"{endpoints.worker} (console: {endpoints.worker}/console/)",
        "source MinIO": _with_console(endpoints.source, endpoints.source_console),
        "destination MinIO": _with_console(endpoints.destination, endpoints.destination_console),
        "catalog": f"{endpoints.catalog} (signed requests only)",
        "Trino": endpoints.trino or "not started",
    }
    for name, address in lines.items():
        click.echo(f"{name:18} {address}")
    for line in moved_ports(settings, endpoints):
        click.echo(f"note: {line}")


def _with_console(address: str, console: str | None) -> str:
    return f"{address} (console: {console})" if console else address


def _load(settings: Settings, endpoints: Endpoints, records: int) -> None:
    """Send records of each kind, and wait until the connectors have landed them."""
    from icestream.client import ConnectClient
    from icestream.embedded.loadgen import produce
    from icestream.stack.steps import logs as kinds_of_logs

    with ConnectClient(endpoints.worker) as client:
        before = _landed(client)
        for log in kinds_of_logs(settings):
            produce(endpoints.bootstrap, log.topic, log.kind, records, seed=time.time_ns() % 1_000_000)
        click.echo(f"sent {records:,} records to each topic")
        wanted = before + 3 * records
        deadline = time.monotonic() + _LAND_S
        while (now := _landed(client)) < wanted:
            if time.monotonic() > deadline:
                raise IcestreamError(
                    f"{now - before:,} of {3 * records:,} records are in the tables after {_LAND_S:.0f} s;"
                    " see `icestream stack logs kafka-connect`"
                )
            time.sleep(0.5)
    click.echo(f"{3 * records:,} records are in the tables")


def _landed(client: Any) -> int:
    return sum(view.progress.rows + view.progress.rejected for view in client.overview() if view.progress)


def _queries(settings: Settings, endpoints: Endpoints) -> None:
    from icestream.stack.steps import seed_queries

    if endpoints.trino is None:
        click.echo(f'ask Spark: icestream sql --url {endpoints.worker} "SHOW TABLES IN {settings.namespace}"')
        return
    for statement in seed_queries(settings):
        _ask(endpoints.trino, statement)


def _ask(address: str, statement: str) -> None:
    from rich.console import Console

    from icestream.cli.sql import result_table
    from icestream.pipeline.sql import Result
    from icestream.stack.trino_client import Trino

    answer = Trino(address).run(statement)
    console = Console()
    if not console.is_terminal:
        console = Console(width=400)
    console.print(f"trino> {statement}", markup=False, highlight=False)
    console.print(result_table(Result(answer.statement, answer.columns, answer.rows)))
    console.print(f"{len(answer.rows):,} row{'' if len(answer.rows) == 1 else 's'}\n", highlight=False)
