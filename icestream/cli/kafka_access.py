"""How a command that reads Kafka itself finds it, and the config of the connector it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from icestream.client import ConnectClient

T = TypeVar("T")


def reaches_kafka(command: Callable[..., T]) -> Callable[..., T]:
    """The options that `known` needs."""
    options = [
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The connector's file, instead of asking the worker.",
        ),
        click.option(
            "--bootstrap-servers",
            envvar="ICESTREAM_BOOTSTRAP_SERVERS",
            help="Kafka's address.  [default: that of the worker's file, or localhost:9092]",
        ),
        click.option(
            "--worker",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The worker's properties file: how to reach a Kafka that wants TLS or a login.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def known(
    client: ConnectClient,
    connector: str,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
) -> tuple[dict[str, str], dict[str, str]]:
    """The connector's config, with the values of the worker's config providers, and the worker's."""
    given, resolve = _worker(worker)
    if bootstrap_servers:
        given["bootstrap.servers"] = bootstrap_servers
    return resolve(_config(connector, client, config)), given


def _worker(file: Path | None) -> tuple[dict[str, str], Callable[[Mapping[str, str]], dict[str, str]]]:
    """The worker's settings, and what puts the values of its config providers into a config."""
    if file is None:
        return {}, dict
    from icestream.cluster.configs.properties import read_properties
    from icestream.cluster.configs.providers import providers_from

    given = read_properties(file)
    providers = providers_from(given)
    return providers.resolved(given), providers.resolved


def _config(connector: str, client: ConnectClient, file: Path | None) -> dict[str, str]:
    if file is not None:
        from icestream.cluster.configs.properties import read_connector

        return dict(read_connector(file).config)
    return client.config(connector)
