"""`icestream operator run`: the operator as a process."""

from __future__ import annotations

import os
import socket
from typing import Final

import click

from icestream.api.errors import PreconditionError
from icestream.cli.worker_process import log_format_option

_ADDRESS: Final = "HOST:PORT=HOST:PORT"


@click.command(
    epilog="\b\nExample:\n"
    "  icestream operator run --namespace data\n"
    "  icestream operator run --strimzi-resources all --leader-elect"
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    envvar="ICESTREAM_OPERATOR_NAMESPACES",
    help="Only look at this one; may be given several times. Otherwise at all.",
)
@click.option(
    "--strimzi-resources",
    type=click.Choice(["annotated", "all"]),
    default="annotated",
    show_default=True,
    help="Which of Strimzi's kinds are ours: those with icestream.dev/managed=true, or all.",
)
@click.option(
    "--resync",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds after which every resource is looked at again.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Of /healthz, /readyz and /metrics; 0: any that is free.",
)
@click.option(
    "--image",
    envvar="ICESTREAM_IMAGE",
    help="For clusters that name none; otherwise the release of this operator.",
)
@click.option("--leader-elect", is_flag=True, help="Work only while holding a Lease; for several replicas.")
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    help="Where the Lease is; otherwise the operator's own namespace.",
)
@click.option(
    "--connect-to",
    multiple=True,
    metavar=_ADDRESS,
    help="Reach a Service at another address, for an operator outside of the cluster; * for all.",
)
@click.option("--parallel", type=click.IntRange(1, 64), default=8, show_default=True, help="Turns at once.")
@log_format_option
@click.option("--log-level", default="INFO", show_default=True, help="Of all loggers.")
def run(
    namespaces: tuple[str, ...],
    strimzi_resources: str,
    resync: float,
    port: int,
    image: str | None,
    leader_elect: bool,
    lease_namespace: str | None,
    connect_to: tuple[str, ...],
    parallel: int,
    log_format: str | None,
    log_level: str,
) -> None:
    """Watch resources, and make clusters and connectors of them.

    It finds the API server by its pod's service account, or by $KUBECONFIG.
    """
    from icestream import logs

    try:
        import kopf  # noqa: F401
        import lightkube  # noqa: F401
    except ImportError:
        raise PreconditionError(
            "the operator needs packages that are not installed; pip install 'icestream[operator]'"
        ) from None
    from icestream.operator import process
    from icestream.operator.api_server import config_from_environment
    from icestream.operator.manifests.facts import DEFAULT_IMAGE
    from icestream.operator.reconcilers import Policy

    logs.configure_process(log_level, logs.Logging(log_format or "json", socket.gethostname()))
    config = config_from_environment()
    here = lease_namespace or config.namespace or "default"
    holder = f"{socket.gethostname()}-{os.getpid()}"
    process.run(
        config,
        process.Options(
            namespaces=_namespaces(namespaces),
            policy=Policy(strimzi_resources == "all", image or DEFAULT_IMAGE, _addresses(connect_to)),
            resync_seconds=resync,
            port=port,
            lease=process.LeaseName(here, "icestream-operator", holder) if leader_elect else None,
            parallel=parallel,
        ),
    )


def _namespaces(given: tuple[str, ...]) -> tuple[str, ...]:
    """A variable of the environment has them with commas or spaces between."""
    return tuple(dict.fromkeys(name for each in given for name in each.replace(",", " ").split()))


def _addresses(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for service, equals, address in pairs:
        if not service or not equals or ":" not in address:
            raise click.BadParameter(
                f"'{service}{equals}{address}' is not {_ADDRESS}", param_hint="--connect-to"
            )
    return {service: address for service, _, address in pairs}
