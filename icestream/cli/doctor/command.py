"""`icestream doctor`: looks at all that a worker and a connector need, from outside, and says what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icestream.api.errors import ConfigError, IcestreamError
from icestream.cli.doctor.findings import Finding, Look, Sign, fine, looked, notice, wrong
from icestream.cli.lines import one_line
from icestream.cli.worker_options import DEFAULT_URL, print_json, worker_client

if TYPE_CHECKING:
    from icestream.client import ConnectClient
    from icestream.cluster.configs.providers import Providers
    from icestream.cluster.settings.rest_settings import Listener

_SHORTEST_SECRET: Final = 3
_NO_SECRETS: Final = ("true", "false")
"""Values of switches whose names have a word of secrets."""


@click.command(
    epilog="""\b
Examples:
  icestream doctor
  icestream doctor --worker worker.properties
  icestream doctor --worker worker.properties sink.json
  icestream doctor --worker worker.properties --url http://127.0.0.1:8083 orders-sink
  icestream doctor --worker worker.properties --json

\b
Exit codes:
  0  nothing is wrong
  1  something is
  2  called wrongly
""",
    short_help="What keeps a worker or a connector from work.",
)
@click.argument("connector", metavar="[CONNECTOR.properties|CONNECTOR.json|NAME]", required=False)
@click.option(
    "--worker",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The worker's properties file: its Kafka, topics and ports are looked at.",
)
@click.option(
    "--url",
    envvar="ICESTREAM_URL",
    help=f"The REST address of a worker that runs; also $ICESTREAM_URL.  [default for NAME: {DEFAULT_URL}]",
)
@click.option(
    "--user", envvar="ICESTREAM_USER", metavar="NAME:PASSWORD", help="For basic authentication of REST."
)
@click.option(
    "--cacert",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file of the authorities to trust for https.",
)
@click.option("--insecure", is_flag=True, help="Take any certificate.")
@click.option("--clock", "clocks", metavar="URL", multiple=True, help="Compare the clock with this server's.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=600),
    default=20.0,
    show_default=True,
    help="How many seconds an answer may take; all are asked at the same time.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def doctor(
    connector: str | None,
    worker: Path | None,
    url: str | None,
    user: str | None,
    cacert: str | None,
    insecure: bool,
    clocks: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> None:
    """Look at this machine, a worker's config and a connector, and say what is wrong and what to do next.

    Nothing is changed. Passwords are not shown. What the config of a connector points at is asked as by
    `validate`: a store may get an object that is removed at once.
    """
    from icestream import logs

    logs.configure("CRITICAL")
    is_file = connector is not None and Path(connector).is_file()
    if connector is not None and not is_file and _is_path(connector):
        raise click.UsageError(f"there is no file {connector}")
    client = None
    if url or (connector is not None and not is_file):
        client = worker_client(url or DEFAULT_URL, user, cacert, insecure, timeout)
    case = _Case(worker, connector, client, clocks, timeout)
    found: list[Finding] = []
    for finding in case.findings():
        found.append(finding)
        if not as_json:
            click.echo(_line(finding))
    counts = Counter(finding.sign for finding in found)
    is_well = not counts[Sign.WRONG]
    if as_json:
        print_json({"ok": is_well, "findings": [asdict(finding) for finding in found]})
    else:
        click.echo(f"{counts[Sign.FINE]} fine, {counts[Sign.NOTICE]} to look at, {counts[Sign.WRONG]} wrong")
    if not is_well:
        raise SystemExit(1)


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".json", ".properties"))


def _line(finding: Finding) -> str:
    advice = f" → {finding.advice}" if finding.advice else ""
    colour = {Sign.FINE: "green", Sign.NOTICE: "yellow", Sign.WRONG: "red"}[finding.sign]
    mark = click.style(finding.sign.mark, fg=colour)
    return f"{mark} {one_line(finding.what)}: {one_line(finding.fact)}{one_line(advice)}"


@dataclass
class _Case:
    """What was asked for, and what is known of it so far."""

    worker_file: Path | None
    connector: str | None
    client: ConnectClient | None
    clocks: tuple[str, ...]
    seconds: float
    worker: Mapping[str, str] = field(default_factory=dict, repr=False)
    listeners: list[tuple[str, Listener]] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def findings(self) -> Iterator[Finding]:
        from icestream.cli.doctor.kafka import kafka_findings
        from icestream.cli.doctor.machine import machine_looks
        from icestream.cli.doctor.running import clock_findings, state_findings, worker_findings

        at_once, providers = self._read_worker()
        looks: list[Look] = machine_looks(self.worker, self.listeners)
        if self.worker_file is not None:
            looks.append(Look("Kafka", lambda: kafka_findings(self.worker, self.seconds)))
        if (client := self.client) is not None:
            looks.append(Look(f"worker {client.url}", lambda: worker_findings(client)))
        for url in self.clocks:
            looks.append(Look("clock", partial(clock_findings, url, self.seconds)))
        if (connector := self.connector) is not None:
            found, more = self._of_connector(connector, providers)
            at_once += found
            looks += more
            if client is not None and not Path(connector).is_file():
                looks.append(Look(f"connector {connector}, state", lambda: state_findings(client, connector)))
        yield from looked([Look("config", lambda: at_once), *looks], self.seconds, self._discreet)

    def _read_worker(self) -> tuple[list[Finding], Providers]:
        """The worker's config is looked at as a worker would at its start."""
        from icestream.cluster.configs.properties import read_properties
        from icestream.cluster.configs.providers import providers_from
        from icestream.cluster.settings.worker_config import parse_distributed, parse_standalone

        if self.worker_file is None:
            return [], providers_from({})
        given = read_properties(self.worker_file)
        what, providers = str(self.worker_file), providers_from({})
        self._hide(given, given)
        self.worker = given
        try:
            providers = providers_from(given)
            self.worker = providers.resolved(given)
            self._hide(given, self.worker)
            is_cluster = bool(given.get("group.id", "").strip())
            config = parse_distributed(given) if is_cluster else parse_standalone(given)
        except ConfigError as error:
            return [
                wrong(what, str(one).rstrip("."), "correct this setting") for one in error.problems
            ], providers
        except IcestreamError as error:
            return [wrong(what, str(error), "correct it")], providers
        self.worker = config.raw
        self.listeners = [("listeners", one) for one in config.rest.listeners if one.port]
        for key, listeners in (
            ("admin.listeners", config.rest.admin_listeners),
            ("icestream.console.listeners", config.rest.console_listeners),
            ("metrics.listeners", config.metrics.listeners),
            ("icestream.actuator.listeners", config.actuator.listeners),
        ):
            self.listeners += [(key, one) for one in listeners or () if one.port]
        mode = f"a worker of cluster '{given['group.id']}'" if is_cluster else "a standalone worker"
        found = [fine(what, f"the config of {mode}, {len(given)} settings")]
        found += [notice(what, warning, "see that this is meant") for warning in config.warnings]
        return found, providers

    def _of_connector(self, connector: str, providers: Providers) -> tuple[list[Finding], list[Look]]:
        from icestream.cli.doctor.connector import connector_looks
        from icestream.cli.doctor.running import validate_findings
        from icestream.cluster.configs.properties import read_connector

        if Path(connector).is_file():
            file = read_connector(Path(connector))
            name, config = file.name, file.config
        else:
            assert self.client is not None
            name = connector
            try:
                config = dict(self.client.config(name))
            except IcestreamError as error:
                advice = "see `icestream connectors`, or name a file"
                return [wrong(f"connector {name}", str(error), advice)], []
        self._hide(config, config)
        if self.worker_file is None and (client := self.client) is not None:
            # Without the worker's file nobody here knows its converters, its providers and its Kafka.
            return [], [Look(f"connector {name}", lambda: validate_findings(client, name, config))]
        found, looks, secrets = connector_looks(name, config, self.worker, providers, self.seconds)
        self.secrets |= secrets
        return found, looks

    def _hide(self, given: Mapping[str, str], resolved: Mapping[str, str]) -> None:
        """Whatever is a secret, by its type, its name or its place, or came from a config provider, is shown
        nowhere."""
        from icestream.cluster.configs.masking import MASK, hidden_value, masks_of, secrets_inside
        from icestream.cluster.configs.reports import settings_of
        from icestream.cluster.configs.secrets import secrets_of

        secret_keys = masks_of(resolved, settings_of(given)).keys
        for key, value in resolved.items():
            found = secrets_inside(value)
            if key in secret_keys and hidden_value(value) == MASK:
                found.add(value)
            self.secrets |= {
                one: f"[{key}]" for one in found if len(one) >= _SHORTEST_SECRET and one not in _NO_SECRETS
            }
        with suppress(LookupError):
            self.secrets |= secrets_of(given, resolved)

    def _discreet(self, text: str) -> str:
        from icestream.cluster.configs.masking import shown_value
        from icestream.cluster.configs.secrets import discreet

        return shown_value(discreet(text, self.secrets))
