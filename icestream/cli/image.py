"""`icestream image`: archives of container images, without a container engine."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def image() -> None:
    """Archives of container images."""


@image.command(
    epilog="""\b
Examples:
  icestream image push worker.tar.gz registry.example.com/icestream/worker:1.0
  icestream image push all.tar localhost:5000/worker --source icestream/worker:dev --insecure"""
)
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target")
@click.option("--source", help="The image's tag in the archive, if the archive has several.")
@click.option("--insecure", is_flag=True, help="Reach the registry by plain HTTP.")
@click.option(
    "--login",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A config.json of Docker; only its entry for the target's registry is used.",
)
@click.option("--token-host", multiple=True, help="A token server outside of the registry's domain.")
def push(
    archive: Path,
    target: str,
    source: str | None,
    insecure: bool,
    login: Path | None,
    token_host: tuple[str, ...],
) -> None:
    """Push an image of ARCHIVE (docker save or OCI, .tar or .tar.gz) to TARGET; the last line is its name by
    digest."""
    from icestream.image_archives.logins import login_for
    from icestream.image_archives.push import push_archive
    from icestream.image_archives.references import target_in

    place = target_in(None, target, is_insecure=insecure)
    known = login_for(login.read_bytes(), place.host, place.repository) if login else None
    pushed = push_archive(
        archive,
        place,
        known,
        source=source,
        token_hosts=frozenset(token_host),
        told=lambda line: click.echo(line, err=True),
    )
    click.echo(pushed.reference)
