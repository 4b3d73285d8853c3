"""Stores of Google and Azure for tests: the client's own store in memory always, and Azurite where the
environment names the address of its blob service: `AZURITE=http://127.0.0.1:10000`.

Of Google there is no emulator that speaks its XML protocol as the client does.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import os
import urllib.request
import uuid
from typing import Any

import obstore.store
import pytest

from tests.kit.programs import skip_without

_ACCOUNT = "devstoreaccount1"
# Everybody's: Azurite's documentation has it.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

CLOUDS = ["google-in-memory", "azure-in-memory", "azurite"]


def cloud_config(kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a sink to a new bucket."""
    bucket = f"lake-{uuid.uuid4().hex[:8]}"
    if kind == "google-in-memory":
        _in_memory(monkeypatch, "GCSStore")
        return {"store.url": f"gs://{bucket}"}
    if kind == "azure-in-memory":
        _in_memory(monkeypatch, "AzureStore")
        return {"store.url": f"abfss://{bucket}@lakeaccount.dfs.core.windows.net"}
    address = f"{_azurite()}/{_ACCOUNT}"
    _ask(f"{address}/{bucket}?restype=container", "PUT", _signed(bucket))
    return {
        "store.url": f"az://{bucket}",
        "azblob.account.name": _ACCOUNT,
        "azblob.account.key": _KEY,
        "icestream.s3.endpoint": address,
    }


def _in_memory(monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    """Instead of the client for the cloud; whoever opens the bucket again finds what is there."""
    buckets: dict[str, Any] = {}

    def opened(**settings: Any) -> Any:
        name = settings.get("bucket") or settings["container_name"]
        return buckets.setdefault(name, obstore.store.MemoryStore())

    monkeypatch.setattr(obstore.store, client, opened)


def _azurite() -> str:
    address = os.environ.get("AZURITE", "").rstrip("/")
    if not address:
        skip_without("Azurite", "npx azurite-blob, then set AZURITE to its address")
    return address


def _ask(url: str, method: str, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, b"", headers, method=method)
    with urllib.request.urlopen(request, timeout=60):
        pass


def _signed(container: str) -> dict[str, str]:
    """Azure's signature of a request that makes a container, which the client cannot make."""
    date = dt.datetime.now(dt.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    named = f"content-type\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n"
    text = f"PUT\n\n\n\n\n{named}/{_ACCOUNT}/{_ACCOUNT}/{container}\nrestype:container"
    digest = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
    return {
        "Content-Type": "content-type",
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
