"""Which store of Google or Azure a config means, and its login. Nothing is opened here.

`keys`, `checks`, `settings` and `plugin` ask for the place, `stores/cloud_opening` opens it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from icestream import named_files
from icestream.api.config import Config, Setting, Type
from icestream.api.errors import ConfigError, Problem

BUCKET: Final = "s3.bucket.name"
ADDRESS: Final = "store.url"
ENDPOINT: Final = "icestream.s3.endpoint"
GOOGLE_FILE: Final = "gcs.credentials.path"
GOOGLE_KEY: Final = "gcs.credentials.json"
ACCOUNT: Final = "azblob.account.name"
ACCOUNT_KEY: Final = "azblob.account.key"
SAS: Final = "azblob.sas.token"
GOOGLE: Final = "https://storage.googleapis.com"

LOGIN_FILES: Final = Setting(
    "icestream.s3.login.files",
    Type.LIST,
    [],
    "The files of this machine that gcs.credentials.path of a connector may name; none if it is not set.",
)

_KINDS: Final[Mapping[str, Literal["gcs", "azure"]]] = {
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
}
SCHEMES: Final = tuple(_KINDS)
_BUCKET_NAME: Final = re.compile(r"[A-Za-z0-9$][A-Za-z0-9.\-_]{1,220}[A-Za-z0-9]")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_AZURE_HOST: Final = re.compile(
    r"([a-z0-9]{3,24})\.(?:dfs|blob)\.(core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))"
)
_ONLY_S3: Final = (
    *("s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key", "s3.acl.canned", "s3.object.tagging"),
    "s3.wan.mode",
)
"""Who sets one of these relies on it."""
_OF_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "s3": ("aws.", "s3.credentials.provider.", "s3.region", "s3.path.style.access.enabled", "s3.send.digest"),
    "gcs": (GOOGLE_FILE, GOOGLE_KEY, ENDPOINT),
    "azure": (ACCOUNT, ACCOUNT_KEY, SAS, ENDPOINT),
}
_LONGEST_LOGIN: Final = 64 * 2**10
_OF_SERVICE_ACCOUNT: Final = (
    *("type", "project_id", "private_key_id", "private_key", "client_email", "client_id"),
)
"""What a login of Google may say. Others, such as an address to send it to, are left out."""


def settings() -> tuple[Setting, ...]:
    return (
        Setting(
            GOOGLE_FILE,
            Type.STRING,
            "",
            "With gs://: a file of the worker with the key of a service account, one of the worker's "
            f"{LOGIN_FILES.name}.",
        ),
        Setting(
            GOOGLE_KEY,
            Type.PASSWORD,
            "",
            "With gs://: the key of a service account, as JSON. Without it and a file: the worker's login.",
        ),
        Setting(ACCOUNT, Type.STRING, "", "With az://: the storage account of Azure.", check=_account_name),
        Setting(ACCOUNT_KEY, Type.PASSWORD, None, "Its key; without it and a token: the worker's login."),
        Setting(SAS, Type.PASSWORD, None, "A shared access signature instead of the key."),
        Setting(
            ENDPOINT,
            Type.STRING,
            "",
            "With gs:// and az://: another address of the store: of a private network, or an emulator. The "
            "worker's login goes only to hosts of Google and Azure.",
            importance="LOW",
        ),
    )


def _account_name(value: str) -> str | None:
    return None if not value or _ACCOUNT.fullmatch(value) else "it must be 3 to 24 small letters and digits"


@dataclass(frozen=True)
class CloudPlace:
    """A bucket of Google, or a container of Azure."""

    kind: Literal["gcs", "azure"]
    bucket: str
    account: str = ""
    """Of Azure."""
    service: str = GOOGLE
    """The address that requests go to."""
    is_elsewhere: bool = False
    """Whether the config names the address: no login of the worker goes there."""

    @property
    def name(self) -> str:
        return f"gs://{self.bucket}" if self.kind == "gcs" else f"az://{self.account}/{self.bucket}"


def is_cloud(config: Config) -> bool:
    scheme, sign, _ = config.get(ADDRESS, "").strip().partition("://")
    return bool(sign) and scheme.lower() in _KINDS


def place_of(config: Config) -> CloudPlace:
    """Of a config without problems."""
    parts = urlsplit(config[ADDRESS].strip())
    kind = _KINDS[parts.scheme.lower()]
    bucket, _, host = parts.netloc.rpartition("@") if "@" in parts.netloc else (parts.netloc, "", "")
    bucket = bucket or config.get(BUCKET, "").strip()
    endpoint = config.get(ENDPOINT, "").strip().rstrip("/")
    if kind == "gcs":
        return CloudPlace(kind, bucket, "", endpoint or GOOGLE, is_elsewhere=not _is_google(endpoint))
    found = _AZURE_HOST.fullmatch(host.lower())
    account = found[1] if found else config.get(ACCOUNT, "").strip()
    suffix = found[2] if found else "core.windows.net"
    service = endpoint or f"https://{account}.blob.{suffix}"
    return CloudPlace(kind, bucket, account, service, is_elsewhere=bool(endpoint))


def _is_google(endpoint: str) -> bool:
    """Such as one of a private network. By a signed connection only."""
    parts = urlsplit(endpoint or GOOGLE)
    return parts.scheme.lower() == "https" and (parts.hostname or "").endswith(".googleapis.com")


def problems(config: Config) -> Iterator[Problem]:
    """Of an address that `is_cloud`, and of what goes with it."""
    parts = urlsplit(config[ADDRESS].strip())
    bucket, sign, host = parts.netloc.rpartition("@")
    bucket = bucket if sign else host
    given = config.get(BUCKET, "").strip()
    if parts.path.strip("/") or parts.query or parts.fragment:
        yield Problem(ADDRESS, f"'{ADDRESS}' has more in it than a bucket; folders are of topics.dir")
    if ":" in parts.netloc:
        yield Problem(ADDRESS, f"'{ADDRESS}' has a login or a port in it; use the keys that are for them")
    elif not bucket and not given:
        yield Problem(ADDRESS, f"'{ADDRESS}' names no bucket, such as gs://lake; add it, or set {BUCKET}")
    elif bucket and not _BUCKET_NAME.fullmatch(bucket):
        yield Problem(ADDRESS, f"'{ADDRESS}' has '{bucket}' in it, which is no name of a bucket")
    elif bucket and given and bucket != given:
        yield Problem(ADDRESS, f"'{ADDRESS}' and '{BUCKET}' name two buckets; leave one of them out")
    yield from _endpoint_problems(config)
    for key in _ONLY_S3:
        if config.get(key, "").strip().lower() not in ("", "false"):
            yield Problem(key, f"'{key}' is for S3 only; set it for the bucket itself, and leave it out here")
    if _KINDS[parts.scheme.lower()] == "gcs":
        if sign and ":" not in parts.netloc:
            yield Problem(ADDRESS, f"'{ADDRESS}' has an @ in it; write gs://bucket")
        yield from _google_problems(config)
    else:
        yield from _azure_problems(config, host if sign else "")


def _endpoint_problems(config: Config) -> Iterator[Problem]:
    given = config.get(ENDPOINT, "").strip()
    if not given:
        return
    parts = urlsplit(given)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        yield Problem(ENDPOINT, f"'{ENDPOINT}' is no address that begins with http or https")
    elif parts.username or parts.password or parts.query:
        yield Problem(ENDPOINT, f"'{ENDPOINT}' has a login in it; use the keys that are for logins")


def _google_problems(config: Config) -> Iterator[Problem]:
    if config.get(GOOGLE_FILE, "").strip() and config.get(GOOGLE_KEY, "").strip():
        yield Problem(GOOGLE_FILE, f"'{GOOGLE_FILE}' and '{GOOGLE_KEY}' are two logins; leave one out")
    elif not _is_google(config.get(ENDPOINT, "").strip()):
        named = [key for key in (GOOGLE_FILE, GOOGLE_KEY) if config.get(key, "").strip()]
        if named:
            yield Problem(named[0], f"'{ENDPOINT}' is not Google's: no login goes there; leave one out")
    elif config.get(GOOGLE_KEY, "").strip():
        try:
            _service_account(config[GOOGLE_KEY], GOOGLE_KEY)
        except ConfigError as error:
            yield from error.problems


def _azure_problems(config: Config, host: str) -> Iterator[Problem]:
    account = config.get(ACCOUNT, "").strip()
    found = _AZURE_HOST.fullmatch(host.lower())
    if host and found is None:
        yield Problem(
            ADDRESS,
            f"'{ADDRESS}' leads to no account of Azure, such as abfss://lake@account.dfs.core.windows.net",
        )
    elif not host and not account:
        yield Problem(ACCOUNT, f"'{ACCOUNT}' is missing: the storage account of the container")
    elif found and account and found[1] != account:
        yield Problem(ACCOUNT, f"'{ACCOUNT}' is not the account of '{ADDRESS}'; leave one of them out")
    has_key, has_token = bool(config.get(ACCOUNT_KEY)), bool(config.get(SAS))
    if has_key and has_token:
        yield Problem(SAS, f"'{ACCOUNT_KEY}' and '{SAS}' are two logins; leave one of them out")
    if config.get(ENDPOINT, "").strip() and not (has_key or has_token):
        yield Problem(ACCOUNT_KEY, f"'{ENDPOINT}' needs '{ACCOUNT_KEY}' or '{SAS}': a login of its own")


def without_effect(config: Config) -> Iterator[str]:
    """Keys of logins and addresses that are for another store than the config's."""
    kind = _KINDS[config[ADDRESS].strip().partition("://")[0].lower()] if is_cloud(config) else "s3"
    mine = _OF_KINDS[kind]
    others = tuple(key for keys in _OF_KINDS.values() for key in keys if key not in mine)
    yield from (key for key, value in config.items() if key.startswith(others) and value.strip())


def login_file_problems(config: Config, worker: Config) -> list[Problem]:
    """Files of the worker only where its config says so."""
    file = config.get(GOOGLE_FILE, "").strip()
    if not file or file in LOGIN_FILES.parse(worker.get(LOGIN_FILES.name, "")):
        return []
    message = (
        f"'{GOOGLE_FILE}={file}' is none of the worker's {LOGIN_FILES.name}; add it there, or use "
        f"'{GOOGLE_KEY}'"
    )
    return [Problem(GOOGLE_FILE, message)]


def with_login(config: Config) -> dict[str, str]:
    """The config with the content of the file of its login, which tasks do not read."""
    file = config.get(GOOGLE_FILE, "").strip()
    if not file or not is_cloud(config):
        return dict(config)
    try:
        content = named_files.content(Path(file), _LONGEST_LOGIN).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError([Problem(GOOGLE_FILE, f"cannot read '{file}': {reason}")]) from error
    kept = {key: value for key, value in config.items() if key != GOOGLE_FILE}
    return {**kept, GOOGLE_KEY: json.dumps(_service_account(content, GOOGLE_FILE))}


def google_login(config: Config) -> str | None:
    """The key of a service account as JSON; None: the worker's login."""
    given = with_login(config).get(GOOGLE_KEY, "").strip()
    return json.dumps(_service_account(given, GOOGLE_KEY)) if given else None


def _service_account(text: str, key: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    # Nothing of the text is repeated: it is a secret.
    if not isinstance(found, dict) or found.get("type") != "service_account":
        raise ConfigError([Problem(key, f"'{key}' is no key of a service account of Google, as JSON")])
    kept = {name: found[name] for name in _OF_SERVICE_ACCOUNT if isinstance(found.get(name), str)}
    missing = [name for name in ("client_email", "private_key", "private_key_id") if name not in kept]
    if missing:
        raise ConfigError([Problem(key, f"'{key}' has no {missing[0]}; take the whole key of the account")])
    return kept
