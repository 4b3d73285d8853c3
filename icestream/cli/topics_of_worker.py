"""The topics file of a worker: its connectors are there once the worker is. For `icestream standalone` and
`icestream distributed`.

Without a file of its own, the worker is what the environment variables of the topics file's sink describe.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icestream.api.errors import IcestreamError, NotLeader, NotReadyError, RetriableError

if TYPE_CHECKING:
    from icestream.cluster.configs.properties import ConnectorFile
    from icestream.cluster.service import ConnectorService

_LOG = logging.getLogger(__name__)
KEY: Final = "icestream.topics.file"
_AGAIN_SECONDS: Final = 2.0

topics_file_option = click.option(
    "--topics-file",
    type=click.Path(path_type=Path),
    help=f"A YAML file that lists topics: each gets its connector; {KEY} otherwise.",
)


def worker_from_environment(
    topics_file: Path, environ: Mapping[str, str], *, has_peers: bool
) -> dict[str, str]:
    """The properties of a worker without a file; `CONNECT_*` variables win."""
    from icestream.cluster.settings.worker_env import given_properties
    from icestream.cluster.topics_file import rules_for

    said = {**rules_for(environ).worker, **given_properties(environ), KEY: str(topics_file)}
    group = said["group.id"]
    if not has_peers:
        del said["group.id"]
        return {"offset.storage.file.filename": f"{group}.offsets", **said}
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    # As many replicas as the brokers give to topics.
    replicas = {f"{kind}.storage.replication.factor": "-1" for kind in ("config", "offset", "status")}
    return {**topics, **replicas, **said}


def connectors_of_worker(raw: Mapping[str, str]) -> list[ConnectorFile]:
    """One for each topic of the file that the worker's config names; none without one."""
    from icestream.cluster.topics_file import read_topics_file, rules_for

    named = raw.get(KEY, "").strip()
    return read_topics_file(Path(named), rules_for(os.environ)) if named else []


def apply_in_cluster(
    service: ConnectorService, connectors: Sequence[ConnectorFile], stopping: threading.Event
) -> None:
    """Bring the connectors of the file to the cluster. The leader does; whoever is none sees to it that they
    are there, and does it if it becomes the leader meanwhile."""
    left = {one.name: one for one in connectors}
    told = ""
    while left and not stopping.is_set():
        for name, file in list(left.items()):
            try:
                _LOG.info("topics file: connector %s %s", name, service.take_up(file))
                del left[name]
            except NotLeader as error:
                if name in service.names() and dict(service.config(name)) == file.config:
                    del left[name]
                elif str(error) != told:
                    told = str(error)
                    _LOG.info("topics file: the leader of the group brings connector %s, if it has it", name)
            except (RetriableError, NotReadyError) as error:
                if str(error) != told:
                    told = str(error)
                    _LOG.warning("topics file: connector %s is tried again: %s", name, error)
            except IcestreamError as error:
                _LOG.error("topics file: connector %s is left out: %s", name, error)
                del left[name]
        if left:
            stopping.wait(_AGAIN_SECONDS)
