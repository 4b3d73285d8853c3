"""Hadoop's words for an object store or a metastore, in those of Iceberg's catalogs.

`iceberg.hadoop.*` of a connector, and `core-site.xml`, `hdfs-site.xml` and `hive-site.xml` in the folder of
`iceberg.hadoop-conf-dir`, which must be one that the worker's config allows. There is no Hadoop here: what
these say of S3 and of Hive's metastore is translated, the rest is either of no consequence or an error that
says what to set instead. Used by `opening.py` and `settings.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.parsers import expat

from icestream import named_files
from icestream.api.config import Config, Setting, Type, subset
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import PREFIX

HADOOP: Final = "iceberg.hadoop."
CONF_DIR: Final = "iceberg.hadoop-conf-dir"
FOLDERS: Final = Setting(
    "icestream.hadoop.conf.folders",
    Type.LIST,
    [],
    "The folders that connectors may name in iceberg.hadoop-conf-dir, and those below them; none if it is "
    "not set.",
)

_FILES: Final = ("core-site.xml", "hdfs-site.xml", "hive-site.xml")
_MOST_BYTES: Final = 2**20

_RENAMED: Final[Mapping[str, str]] = {
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
    "fs.s3a.endpoint.region": "client.region",
    "fs.s3a.path.style.access": "s3.path-style-access",
    "fs.s3a.assumed.role.arn": "client.assume-role.arn",
    "fs.s3a.assumed.role.session.name": "client.assume-role.session-name",
    "fs.s3a.assumed.role.external.id": "client.assume-role.external-id",
    "hive.metastore.uris": "uri",
    "hive.metastore.warehouse.dir": "warehouse",
}
_IN_MILLISECONDS: Final[Mapping[str, str]] = {
    "fs.s3a.connection.establish.timeout": "s3.connect-timeout",
    "fs.s3a.connection.request.timeout": "s3.request-timeout",
}
_NUMBER: Final = re.compile(r"[0-9]{1,12}")
_ENDPOINT: Final = "fs.s3a.endpoint"
_TLS: Final = "fs.s3a.connection.ssl.enabled"
_PROXY: Final = ("fs.s3a.proxy.host", "fs.s3a.proxy.port")
_LOGINS: Final = "fs.s3a.aws.credentials.provider"
_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_KNOWN_LOGINS: Final = frozenset(
    {
        *("SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider", _ANONYMOUS),
        *("EnvironmentVariableCredentialsProvider", "IAMInstanceCredentialsProvider"),
        *(
            "DefaultCredentialsProvider",
            "DefaultAWSCredentialsProviderChain",
            "AssumedRoleCredentialProvider",
        ),
        *("InstanceProfileCredentialsProvider", "WebIdentityTokenCredentialsProvider"),
        "WebIdentityTokenFileCredentialsProvider",
    }
)
ADDRESSES: Final = tuple(f"{HADOOP}{key}" for key in (_ENDPOINT, _PROXY[0], "hive.metastore.uris"))
"""Keys of a connector whose values are addresses."""

_NO_CONSEQUENCE: Final = (
    *(
        "fs.s3a.impl",
        "fs.s3.impl",
        "fs.s3n.impl",
        "fs.AbstractFileSystem.",
        "fs.trash.",
        "io.",
        "hadoop.tmp.dir",
    ),
    *("fs.s3a.attempts.", "fs.s3a.retry.", "fs.s3a.threads.", "fs.s3a.max.total.tasks", "fs.s3a.fast."),
    *(
        "fs.s3a.connection.maximum",
        "fs.s3a.connection.acquisition.",
        "fs.s3a.connection.idle.",
        "fs.s3a.list.",
    ),
    *(
        "fs.s3a.multipart.",
        "fs.s3a.multiobjectdelete.",
        "fs.s3a.paging.",
        "fs.s3a.block.size",
        "fs.s3a.buffer.",
    ),
    *("fs.s3a.committer.", "fs.s3a.experimental.", "fs.s3a.input.", "fs.s3a.readahead.", "fs.s3a.socket."),
    *("fs.s3a.directory.marker.", "fs.s3a.bucket.probe", "fs.s3a.change.detection.", "fs.s3a.vectored."),
    *("fs.s3a.select.", "fs.s3a.user.agent.", "fs.s3a.connection.timeout", "fs.s3a.connection.ttl"),
    *("fs.s3a.audit.", "fs.s3a.etag.", "fs.s3a.downgrade.", "fs.s3a.accesspoint.", "fs.s3a.endpoint.fips"),
)
"""How Hadoop's own client does its work."""
_INSTEAD: Final = (
    ("fs.s3a.server-side-encryption", "encrypt by default in the bucket's own settings"),
    ("fs.s3a.encryption.", "encrypt by default in the bucket's own settings"),
    (
        "fs.s3a.bucket.",
        "settings of one bucket are not known here; set iceberg.catalog.s3.* of this connector",
    ),
    ("fs.s3a.assumed.role.", "set iceberg.catalog.client.assume-role.*"),
    ("fs.s3a.security.credential.provider.path", "set iceberg.catalog.s3.access-key-id and its secret"),
    ("hadoop.security.credential.provider.path", "set iceberg.catalog.s3.access-key-id and its secret"),
    ("fs.s3a.", "set iceberg.catalog.s3.*"),
    ("fs.gs.", "set iceberg.catalog.gcs.*"),
    ("google.cloud.", "set iceberg.catalog.gcs.*"),
    ("fs.azure.", "set iceberg.catalog.adls.account-name and iceberg.catalog.adls.account-key"),
    ("hive.metastore.sasl.enabled", "metastores that want Kerberos cannot be reached; use a REST catalog"),
    ("hive.metastore.kerberos.", "metastores that want Kerberos cannot be reached; use a REST catalog"),
    ("hive.metastore.use.SSL", "metastores that want TLS cannot be reached; use a REST catalog"),
    ("hadoop.security.authentication", "Kerberos is not known here; use an object store with keys"),
    ("dfs.", "HDFS cannot be written to; use an object store"),
    (
        "fs.defaultFS",
        "HDFS cannot be written to; set iceberg.catalog.warehouse to a place in an object store",
    ),
)
"""What matters to where and how tables are written, and has no counterpart."""
_HARMLESS_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "hadoop.security.authentication": ("simple",),
    "hive.metastore.sasl.enabled": ("false",),
    "hive.metastore.use.SSL": ("false",),
    "fs.s3a.server-side-encryption-algorithm": ("", "AES256"),
    "fs.s3a.encryption.algorithm": ("", "AES256"),
}
"""Values that say what is so anyway; S3 itself encrypts with keys of its own."""


def with_hadoop(config: Config) -> dict[str, str]:
    """The settings under `iceberg.catalog.`, and below them what Hadoop's say. Raises ConfigError."""
    own = subset(config, PREFIX)
    given = hadoop_settings(config)
    if not given:
        return own
    found = _translated(given)
    if not _is_hive(own):
        for key in ("uri", "warehouse"):
            found.pop(key, None)
    return {**found, **own}


def _is_hive(catalog: Mapping[str, str]) -> bool:
    if implementation := catalog.get("catalog-impl"):
        return implementation == "org.apache.iceberg.hive.HiveCatalog"
    return catalog.get("type", "").lower() == "hive"


def hadoop_settings(config: Config) -> dict[str, str]:
    """What the files of the folder say, and above them the connector's own keys."""
    folder = config.get(CONF_DIR, "").strip()
    files = _folder_settings(Path(folder)) if folder else {}
    own = {key: value.strip() for key, value in subset(config, HADOOP).items() if value.strip()}
    for key, value in files.items():
        matters = key.startswith("fs.s3a.") or (key.startswith("hive.") and _is_hive(subset(config, PREFIX)))
        if not matters or key in own:
            continue
        # Hadoop puts other properties and variables of the environment in there.
        instead = "write its value without ${…}" if "${" in value else _instead(key, value)
        if instead:
            # Others' files are full of what is of no consequence here; what matters must not be lost.
            raise _problem(CONF_DIR, f"'{key}' in its files cannot be honoured; {instead}")
    return {**files, **own}


def hadoop_problems(config: Config) -> list[Problem]:
    """Of the connector's own keys those that cannot be honoured. Opens nothing."""
    found = []
    for key, value in subset(config, HADOOP).items():
        if instead := _instead(key, value.strip()):
            found.append(Problem(f"{HADOOP}{key}", f"'{HADOOP}{key}' cannot be honoured; {instead}"))
    return found


def hadoop_warnings(config: Config) -> list[str]:
    return [
        f"'{HADOOP}{key}' has no effect: there is no Hadoop here"
        for key in subset(config, HADOOP)
        if not _is_translated(key) and not _instead(key, config[f"{HADOOP}{key}"].strip())
    ]


def folder_problem(config: Config, worker: Config) -> Problem | None:
    """Why the worker does not let a connector read its folder."""
    given = config.get(CONF_DIR, "").strip()
    if not given:
        return None
    allowed = [Path(os.path.realpath(one)) for one in FOLDERS.parse(worker.get(FOLDERS.name, ""))]
    try:
        real = Path(os.path.realpath(given))
    except ValueError:
        return Problem(CONF_DIR, f"'{CONF_DIR}' is no path; correct it")
    if any(real.is_relative_to(folder) for folder in allowed):
        return None
    return Problem(
        CONF_DIR,
        f"'{CONF_DIR}' names a folder that connectors may not read; use one of {FOLDERS.name} of the worker, "
        "or set iceberg.hadoop.* instead",
    )


def _is_translated(key: str) -> bool:
    return key in _RENAMED or key in _IN_MILLISECONDS or key in (_ENDPOINT, _TLS, _LOGINS, *_PROXY)


def _instead(key: str, value: str) -> str | None:
    """What to set in place of a key that matters and has no counterpart; None for all others."""
    if _is_translated(key) or value in _HARMLESS_VALUES.get(key, ()) or key.startswith(_NO_CONSEQUENCE):
        return None
    if key == "fs.defaultFS" and not value.startswith(("hdfs:", "viewfs:")):
        return None
    return next((instead for start, instead in _INSTEAD if key.startswith(start)), None)


def _translated(given: Mapping[str, str]) -> dict[str, str]:
    found = {_RENAMED[key]: value for key, value in given.items() if key in _RENAMED}
    for key, ours in _IN_MILLISECONDS.items():
        if key in given:
            found[ours] = _seconds(key, given[key])
    if endpoint := given.get(_ENDPOINT):
        scheme = "http" if given.get(_TLS, "true").lower() == "false" else "https"
        found["s3.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if host := given.get(_PROXY[0]):
        port = given.get(_PROXY[1])
        found["s3.proxy-uri"] = f"http://{host}:{port}" if port else f"http://{host}"
    names = [name.strip().rpartition(".")[2] for name in given.get(_LOGINS, "").split(",") if name.strip()]
    if unknown := [name for name in names if name not in _KNOWN_LOGINS]:
        raise _problem(
            f"{HADOOP}{_LOGINS}",
            f"'{unknown[0]}' is a class, which cannot be loaded; set iceberg.catalog.s3.access-key-id and "
            "its secret, or let the worker's environment have the login",
        )
    if names == [_ANONYMOUS]:
        found["s3.anonymous"] = "true"
    return found


def _seconds(key: str, value: str) -> str:
    number = value.lower().removesuffix("ms").strip()
    if number.endswith("s") and _NUMBER.fullmatch(number[:-1]):
        return str(float(number[:-1]))
    if not _NUMBER.fullmatch(number):
        raise _problem(f"{HADOOP}{key}", f"'{value}' is no number of milliseconds; correct it")
    return str(int(number) / 1000)


# -- files --


def _folder_settings(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    there = False
    for name in _FILES:
        try:
            text = named_files.content(folder / name, _MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _problem(CONF_DIR, f"'{name}' there cannot be read: {error.strerror}") from None
        there = True
        try:
            found |= dict(_properties(text))
        except (expat.ExpatError, _Unreadable) as error:
            # Not its text: that would tell of a file which is something else.
            reason = str(error) if isinstance(error, _Unreadable) else "it is no XML"
            raise _problem(CONF_DIR, f"'{name}' there is not taken: {reason}") from None
    if not there:
        raise _problem(CONF_DIR, f"there is none of {', '.join(_FILES)}; correct the folder")
    return found


class _Unreadable(Exception):
    """XML that does more than hold properties."""


def _properties(text: bytes) -> Iterator[tuple[str, str]]:
    """The properties of a Hadoop configuration. No declarations, no entities, no inclusion: nothing else is
    read because of it, and it does not grow."""
    found: list[tuple[str, str]] = []
    path: list[str] = []
    fields: dict[str, str] = {}

    def start(name: str, _: Mapping[str, str]) -> None:
        if name.rpartition(":")[2] == "include":
            raise _Unreadable("it includes another file; put the properties into this one")
        path.append(name)
        if path[1:] == ["property"]:
            fields.clear()

    def text_of(text: str) -> None:
        if len(path) == 3 and path[1] == "property":
            fields[path[2]] = fields.get(path[2], "") + text

    def end(_: str) -> None:
        if path[1:] == ["property"] and fields.get("name", "").strip():
            found.append((fields["name"].strip(), fields.get("value", "").strip()))
        path.pop()

    def declares(*_: object) -> None:
        raise _Unreadable("it has a document type declaration; remove it")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text_of
    parser.StartDoctypeDeclHandler = declares
    parser.Parse(text, True)
    yield from found


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, f"{key}: {message}.")])
