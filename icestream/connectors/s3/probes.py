"""Asks the store of a config whether it is there, may be written, and keeps its conditions. For `plugin`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config
from icestream.api.connector import Probe
from icestream.api.errors import ConfigError, Problem, SinkUnavailable
from icestream.connectors.s3.clouds import is_cloud, place_of
from icestream.connectors.s3.commits.ledger import FOLDER
from icestream.connectors.s3.keys import AT_LEAST_ONCE
from icestream.connectors.s3.settings import is_folder, parsed
from icestream.connectors.s3.stores.opening import open_store
from icestream.connectors.s3.stores.store import Exists, ObjectStore

_BUCKET: Final = "s3.bucket.name"


def store_probes(config: Config) -> Iterator[Probe]:
    key = "store.url" if config.get("store.url") else _BUCKET
    yield Probe(key, _named(config), lambda probe: _ask(config, key))


def _named(config: Config) -> str:
    address = config.get("store.url", "")
    if is_folder(config):
        return address
    if is_cloud(config):
        return place_of(config).name
    place = urlsplit(address if "://" in address else f"https://{address}").netloc if address else "AWS"
    return f"S3 at {place}"


def _ask(config: Config, key: str) -> list[Problem]:
    values = parsed(config)
    try:
        # Somebody waits for the answer, and few may wait at a time.
        with closing(open_store({**config, "s3.part.retries": "1"})) as store:
            keeps = keeps_conditions(store, values["topics.dir"])
    except ConfigError as error:
        return list(error.problems)
    except SinkUnavailable as error:
        return [Problem(key, f"{key}: {error}; check the address, the bucket and the login.")]
    if keeps or values[AT_LEAST_ONCE]:
        return []
    return [Problem(key, f"{key}: {no_conditions(store)}")]


def keeps_conditions(store: ObjectStore, topics_dir: str) -> bool:
    """Whether the store refuses to put an object under a name that is taken; leaves nothing behind."""
    top = topics_dir.strip("/")
    key = f"{f'{top}/' if top.strip() else ''}{FOLDER}/probes/{uuid.uuid4()}"
    try:
        # Either may be refused: the client sends a put again whose answer was lost.
        store.put(key, b"1")
        store.put(key, b"2")
    except Exists:
        return True
    finally:
        # Nobody is in the way of what it leaves.
        with suppress(SinkUnavailable):
            store.remove([key])
    return False


def no_conditions(store: ObjectStore) -> str:
    return (
        f"{store.name} does not keep conditions (If-None-Match): a worker that is slow could write over "
        "what another has written. Use a store that does, or bear repeated records with "
        f"{AT_LEAST_ONCE}=true"
    )
