"""`icestream kafka`: the embedded broker as a background process of its own."""

from __future__ import annotations

from pathlib import Path

import click

from icestream.api.errors import IcestreamError

_data = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the broker.  [default: kafka in $ICESTREAM_HOME]",
)


@click.group(
    epilog="\b\nExample:\n  icestream kafka start\n"
    "  icestream load --topic apilogs --records 1000\n  icestream kafka stop"
)
def kafka() -> None:
    """Start and stop the embedded Kafka broker. Its topics stay until the folder is deleted."""


@kafka.command(epilog="\b\nExample:\n  icestream kafka start --port 9092 --data /tmp/kafka")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port to listen on.  [default: the last one or 9092]"
)
@_data
def start(port: int | None, data: Path | None) -> None:
    """Start the broker in the background; a free port is taken if the usual one is not free."""
    from icestream.embedded import kafka as embedded

    broker = embedded.start(data or embedded.default_data(), port)
    click.echo(
        f"Kafka {embedded.VERSION} runs at {broker.bootstrap} (pid {broker.pid}, data in {broker.data})\n"
        f"connect workers to it: bootstrap.servers={broker.bootstrap}\n"
        f"fill a topic: icestream load --topic apilogs --records 1000 --bootstrap-servers {broker.bootstrap}"
    )


@kafka.command(epilog="\b\nExample:\n  icestream kafka stop")
@_data
def stop(data: Path | None) -> None:
    """Stop the broker; its data stays."""
    from icestream.embedded import kafka as embedded

    folder = data or embedded.default_data()
    click.echo("Kafka is stopped" if embedded.stop(folder) else f"no Kafka runs on {folder}")


@kafka.command(epilog="\b\nExample:\n  icestream kafka status --data /tmp/kafka")
@_data
def status(data: Path | None) -> None:
    """Say where the broker runs; exit code 1 if it does not."""
    from icestream.embedded import kafka as embedded

    folder = data or embedded.default_data()
    broker = embedded.status(folder)
    if broker is None:
        raise IcestreamError(f"no Kafka runs on {folder}; start it with `icestream kafka start`")
    click.echo(
        f"Kafka {embedded.VERSION} runs at {broker.bootstrap} (pid {broker.pid}, data in {broker.data})"
    )
