"""`icestream operator`: the Kubernetes operator, and what it would do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.cli.operator_run import run

if TYPE_CHECKING:
    from icestream.operator.resources.cluster_spec import ClusterSpec


@click.group(epilog="Example: icestream operator render -f cluster.yaml")
def operator() -> None:
    """The Kubernetes operator: clusters and connectors from resources."""


operator.add_command(run)


@operator.command(
    epilog="Example: icestream operator render -f k8s/examples/strimzi-v1.yaml | kubectl diff -f -",
    short_help="Print the objects that a cluster's resource becomes.",
)
@click.option(
    "-f",
    "--file",
    "files",
    required=True,
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML with resources of kind KafkaConnect or IcestreamCluster; may be repeated.",
)
@click.option(
    "--image", help="What workers run if the resource names no image; the operator's own otherwise."
)
@click.option("--keda", is_flag=True, help="As on a server that has KEDA.")
@click.option("--pod-monitors", is_flag=True, help="As on a server that has Prometheus' operator.")
def render(files: tuple[Path, ...], image: str | None, keda: bool, pod_monitors: bool) -> None:
    """Print, as YAML, the objects that the operator makes of resources. No server is asked.

    Warnings go to the standard error. Images from S3 are shown as the default image, and resources that are
    no clusters are left out.
    """
    from icestream.operator.manifests.cluster import DEFAULT_IMAGE, Facts, desired
    from icestream.operator.manifests.yaml_text import as_yaml

    facts = Facts(default_image=image or DEFAULT_IMAGE, has_keda=keda, has_pod_monitors=pod_monitors)
    specs = [spec for path in files for spec in _clusters(path)]
    if not specs:
        raise PreconditionError("there is no KafkaConnect or IcestreamCluster in these files; name others")
    for spec in specs:
        for notice in spec.warnings:
            click.echo(f"{spec.kind} {spec.name}: {notice.message}", err=True)
    click.echo(as_yaml(one for spec in specs for one in desired(spec, facts)), nl=False)


def _clusters(path: Path) -> Iterator[ClusterSpec]:
    from icestream.operator.kinds import CLUSTERS
    from icestream.operator.resources.cluster import parse_cluster

    kinds = [kind.name for kind in CLUSTERS]
    for resource in _documents(path):
        if isinstance(resource, dict) and resource.get("kind") in kinds:
            try:
                yield parse_cluster(resource)
            except IcestreamError as error:
                raise PreconditionError(f"{path}: {error}") from None


def _documents(path: Path) -> list[Any]:
    import yaml

    from icestream.bounded_yaml import BoundedLoader

    try:
        return list(yaml.load_all(path.read_text(), Loader=BoundedLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PreconditionError(f"{path} is not YAML ({first}); mend it") from None
