"""Opens the store that a config names. For `target` in the manager, and for `writer` in tasks, where a
process keeps what it has opened."""

from __future__ import annotations

import base64
import functools
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.aws_roles import Keys, Role, lasting, login_of
from icestream.connectors.s3 import clouds
from icestream.connectors.s3.keys import AT_LEAST_ONCE, PROVIDER, ROLE_PROVIDER
from icestream.connectors.s3.settings import folder_of, is_folder, parsed
from icestream.connectors.s3.stores.cloud_opening import open_cloud
from icestream.connectors.s3.stores.folder_store import FolderStore
from icestream.connectors.s3.stores.s3_store import NewObjects, S3Store
from icestream.connectors.s3.stores.store import ObjectStore

_ROLE_SECONDS: Final = 3600
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_CONNECTIONS: Final = 32
_PREFIXES: Final = ("s3.", "aws.", "gcs.", "azblob.")
_KEYS: Final = ("store.url", "topics.dir", "format.class", "flush.size", AT_LEAST_ONCE, clouds.ENDPOINT)
_KEPT: Final = 16
"""Stores that a process keeps open."""


def store_settings(config: Config) -> dict[str, str]:
    """What of a config leads to its store: plain data for tasks. Secrets are among it."""
    return {
        key: value
        for key, value in clouds.with_login(config).items()
        if key.startswith(_PREFIXES) or key in _KEYS
    }


def process_store(settings: Mapping[str, str]) -> ObjectStore:
    """This process's store of these settings: a client takes long to make."""
    return _kept(pickle.dumps(sorted(settings.items())))


@functools.lru_cache(maxsize=_KEPT)
def _kept(pickled: bytes) -> ObjectStore:
    return open_store(dict(pickle.loads(pickled)))


def open_store(config: Config) -> ObjectStore:
    if is_folder(config):
        return FolderStore(Path(folder_of(config)))
    values = parsed(config)
    if clouds.is_cloud(config):
        return open_cloud(config, values, (_proxies(values) or {}).get("https"))
    return S3Store(_client(values), values["s3.bucket.name"], _new_objects(values))


def _new_objects(values: Mapping[str, Any]) -> NewObjects:
    uploads: dict[str, str] = {}
    parts: dict[str, str] = {}
    if values["s3.sse.customer.key"]:
        # The client adds its checksum.
        key = base64.b64decode(values["s3.sse.customer.key"], validate=True)
        parts = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key.decode("latin-1")}
        uploads |= parts
    elif values["s3.ssea.name"]:
        uploads["ServerSideEncryption"] = values["s3.ssea.name"]
        if values["s3.sse.kms.key.id"] and values["s3.ssea.name"].startswith("aws:kms"):
            uploads["SSEKMSKeyId"] = values["s3.sse.kms.key.id"]
    if values["s3.acl.canned"]:
        uploads["ACL"] = values["s3.acl.canned"]
    return NewObjects(
        uploads,
        parts,
        values["s3.part.size"],
        tags=_tags(values),
        needs_tags=values["s3.object.behavior.on.tagging.error"].lower() == "fail",
        with_digest=values["s3.send.digest"],
        on_condition=not values[AT_LEAST_ONCE],
    )


def _tags(values: Mapping[str, Any]) -> dict[str, str] | None:
    if not values["s3.object.tagging"]:
        return None
    pairs = (one.partition(":") for one in values["s3.object.tagging.key.value.pairs"])
    return {name: value for name, _, value in pairs}


def _client(values: Mapping[str, Any]) -> Any:
    import boto3
    import botocore.config

    keys, role = _keys(values), _role(values)
    own = _session()
    if role is not None:
        own._credentials = lasting(login_of(role))
        keys = None
    session = boto3.Session(
        botocore_session=own,
        aws_access_key_id=keys.id if keys else None,
        aws_secret_access_key=keys.secret if keys else None,
        region_name=values["s3.region"],
    )
    if session.get_credentials() is None:
        message = "'aws.access.key.id' is missing, and the worker has no login to AWS either; set both keys"
        raise ConfigError([Problem("aws.access.key.id", message)])
    address = values["store.url"] or None
    if address and "://" not in address:
        address = f"https://{address}"
    is_path = values["s3.path.style.access.enabled"]
    return session.client(
        "s3",
        endpoint_url=address,
        config=botocore.config.Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": 1 + values["s3.part.retries"], "mode": "standard"},
            # Other stores do not all know the checksums that AWS's clients add by themselves.
            request_checksum_calculation="when_required" if address else "when_supported",
            response_checksum_validation="when_required" if address else "when_supported",
            max_pool_connections=_CONNECTIONS,
            proxies=_proxies(values),
            s3={
                "addressing_style": "path" if is_path else "virtual",
                "use_accelerate_endpoint": values["s3.wan.mode"],
            },
        ),
    )


def _session() -> Any:
    """A session of its own with what all of them read from disk, which takes longer than all the rest."""
    import botocore.session

    session = botocore.session.get_session()
    session.register_component("data_loader", _loader())
    return session


@functools.cache
def _loader() -> Any:
    import botocore.session

    return botocore.session.get_session().get_component("data_loader")


def _proxies(values: Mapping[str, Any]) -> dict[str, str] | None:
    address = values["s3.proxy.url"]
    if not address:
        return None
    if "://" not in address:
        address = f"http://{address}"
    if values["s3.proxy.user"]:
        login = (
            f"{quote(values['s3.proxy.user'], safe='')}:{quote(values['s3.proxy.password'] or '', safe='')}"
        )
        scheme, _, rest = address.partition("://")
        address = f"{scheme}://{login}@{rest}"
    return {"http": address, "https": address}


def _keys(values: Mapping[str, Any]) -> Keys | None:
    if not values["aws.access.key.id"]:
        return None
    return Keys(values["aws.access.key.id"], values["aws.secret.access.key"] or "")


def _role(values: Mapping[str, Any]) -> Role | None:
    if values[f"{PROVIDER}class"] != ROLE_PROVIDER:
        return None
    return Role(
        values[f"{PROVIDER}sts.role.arn"] or "",
        values[f"{PROVIDER}sts.role.session.name"] or "icestream",
        values[f"{PROVIDER}sts.role.external.id"] or None,
        _ROLE_SECONDS,
        values[f"{PROVIDER}sts.region"] or values["s3.region"],
        _keys(values),
    )
