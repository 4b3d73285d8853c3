"""Opens a bucket of Google or a container of Azure, as a config says. For `opening`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.s3 import clouds
from icestream.connectors.s3.commits.ledger import FOLDER, top_of
from icestream.connectors.s3.stores.cloud_store import CloudStore

STAGED: Final = "staged"
_CONNECT: Final = timedelta(seconds=10)
_SILENCE: Final = timedelta(seconds=60)
_REQUEST: Final = timedelta(minutes=10)
"""One part of an upload, on a slow line."""
_RETRIES: Final = timedelta(minutes=3)


def open_cloud(config: Config, values: Mapping[str, Any], proxy: str | None) -> CloudStore:
    import obstore.exceptions
    import obstore.store

    place = clouds.place_of(config)
    make = obstore.store.GCSStore if place.kind == "gcs" else obstore.store.AzureStore
    try:
        client = make(**client_settings(config, values, proxy))
    except (obstore.exceptions.BaseError, ValueError):
        # It may repeat the login.
        message = f"{place.name} cannot be opened with this login; check its keys, and the worker's variables"
        raise ConfigError([Problem(clouds.ADDRESS, message)]) from None
    return CloudStore(
        client,
        place.name,
        f"{top_of(values['topics.dir'])}{FOLDER}/{STAGED}",
        values["s3.part.size"],
        has_plain_names=place.kind == "azure",
        secrets=(
            values[clouds.ACCOUNT_KEY] or "",
            values[clouds.SAS] or "",
            values["s3.proxy.password"] or "",
        ),
    )


def client_settings(config: Config, values: Mapping[str, Any], proxy: str | None) -> dict[str, Any]:
    """In the words of the client."""
    place = clouds.place_of(config)
    connections: dict[str, Any] = {
        "allow_http": place.service.lower().startswith("http://"),
        "connect_timeout": _CONNECT,
        "read_timeout": _SILENCE,
        "timeout": _REQUEST,
    }
    if proxy:
        connections["proxy_url"] = proxy
    found: dict[str, Any] = {
        "client_options": connections,
        "retry_config": {"max_retries": values["s3.part.retries"], "retry_timeout": _RETRIES},
    }
    if place.kind == "gcs":
        return found | {"bucket": place.bucket} | _of_google(config, place)
    return (
        found
        | {"container_name": place.bucket, "account_name": place.account, "endpoint": place.service}
        | _of_azure(values)
    )


def _of_google(config: Config, place: clouds.CloudPlace) -> dict[str, Any]:
    if place.is_elsewhere:
        # What Google gives the worker is a token that whoever gets it can use. The client would send it even
        # where it is told to sign nothing.
        return {"base_url": place.service, "credential_provider": _given({"token": "none"})}
    found = {"base_url": place.service} if place.service != clouds.GOOGLE else {}
    login = clouds.google_login(config)
    return found if login is None else {**found, "service_account_key": login}


def _of_azure(values: Mapping[str, Any]) -> dict[str, Any]:
    if values[clouds.ACCOUNT_KEY]:
        return {"credential_provider": _given({"access_key": values[clouds.ACCOUNT_KEY]})}
    if values[clouds.SAS]:
        return {"credential_provider": _given({"sas_token": values[clouds.SAS].removeprefix("?")})}
    return {}


def _given(login: dict[str, str]) -> Callable[[], dict[str, str | None]]:
    """This login and no other: the client prefers some variables of the worker to its settings."""
    return lambda: {**login, "expires_at": None}
