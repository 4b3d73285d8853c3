"""Archives of images from S3 to a registry: the real store and registry behind `images_turn`. The
reconciliation of a cluster makes one `S3Images` per turn and calls it in a thread.

A download goes on where it was cut off, if the object is still the same; only a whole archive with the right
checksum is looked into. It stays in the spool while the registry is away, and goes when it is of no more use.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import (
    ImageArchiveError,
    PreconditionError,
    RegistryRefused,
    RegistryUnavailable,
)
from icestream.image_archives.limits import GIB, MIB, Limits
from icestream.image_archives.logins import Login, login_for
from icestream.image_archives.push import push_archive
from icestream.image_archives.references import Target, target_in
from icestream.image_archives.registry import Registry
from icestream.operator.images import (
    ArchiveVersion,
    ImageFailed,
    ImagePushed,
    ImageSecrets,
    ImagesWanted,
    ImageWanted,
)

_DOCKER_CONFIGS: Final = (".dockerconfigjson", "config.json")
_KEY_IDS: Final = ("AWS_ACCESS_KEY_ID", "access-key-id", "accessKeyId", "accessKey")
_KEY_SECRETS: Final = ("AWS_SECRET_ACCESS_KEY", "secret-access-key", "secretAccessKey", "secretKey")
_KEY_TOKENS: Final = ("AWS_SESSION_TOKEN", "session-token", "sessionToken")
_CHUNK: Final = MIB
_CONNECT_SECONDS: Final = 15
_READ_SECONDS: Final = 120
_ATTEMPTS: Final = 3
_SPARE_BYTES: Final = 64 * MIB
"""A spool that is full to the last byte is of no use to anybody."""

MOST_OF_ALL: Final = 12 * GIB
"""Archives at rest, of all clusters: a pod whose volume is over its limit is evicted, however much room its
node has. The operator's has 20 GiB; what is unpacked on its way needs the rest."""


class S3Images:
    """`spool` is a folder of this cluster alone."""

    def __init__(
        self,
        wanted: ImagesWanted,
        secrets: ImageSecrets,
        spool: Path,
        *,
        limits: Limits | None = None,
        may_sign_as_operator: bool = False,
        token_hosts: frozenset[str] = frozenset(),
        of_all: Path | None = None,
        most_of_all: int = MOST_OF_ALL,
    ) -> None:
        """`may_sign_as_operator`: without a Secret, requests are signed with what the operator itself has;
        otherwise they are not signed, so that nobody reads by a resource what only the operator may.
        `of_all`: the folder with the spools of all clusters, which together have `most_of_all` bytes."""
        self._wanted = wanted
        self._secrets = secrets
        self._spool = spool
        self._limits = limits or Limits()
        self._may_sign = may_sign_as_operator
        self._token_hosts = token_hosts
        self._of_all, self._most_of_all = of_all or spool, most_of_all

    def look(self, image: ImageWanted) -> ArchiveVersion:
        with self._store_errors(image):
            told = self._client().head_object(Bucket=self._wanted.store.bucket, Key=image.path)
        etag, size = str(told.get("ETag", "")), int(told.get("ContentLength", -1))
        if not etag or len(etag) > 256 or not etag.isprintable() or size < 0:
            raise ImageFailed("StoreRefused", f"{self._at(image)} has no ETag or size", is_lasting=False)
        return ArchiveVersion(etag, size)

    def is_there(self, pushed: ImagePushed) -> bool:
        digest = pushed.reference.rpartition("@")[2]
        image = next((one for one in self._wanted.images if one.role == pushed.role), None)
        if image is None:
            return False
        with self._registry_errors():
            target, login = self._target(image)
            if target.by_digest(digest) != pushed.reference:
                return False
            with Registry(target, login, token_hosts=self._token_hosts) as registry:
                return registry.has_manifest(digest) is not None

    def fetch_and_push(self, image: ImageWanted, version: ArchiveVersion) -> str:
        with self._registry_errors():
            target, login = self._target(image)
            # Before gigabytes are fetched: a login that is refused is refused now.
            with Registry(target, login, token_hosts=self._token_hosts) as registry:
                registry.has_manifest(target.tag)
        archive = self._fetched(image, version)
        try:
            with self._registry_errors():
                pushed = push_archive(
                    archive,
                    target,
                    login,
                    source=image.source,
                    spool=self._spool,
                    limits=self._limits,
                    token_hosts=self._token_hosts,
                )
        except ImageArchiveError as error:
            archive.unlink(missing_ok=True)
            raise ImageFailed("ImageArchiveError", f"{self._at(image)}: {error}", is_lasting=True) from error
        archive.unlink(missing_ok=True)
        return pushed.reference

    def _target(self, image: ImageWanted) -> tuple[Target, Login | None]:
        registry = self._wanted.registry
        target = target_in(registry.url, image.target, is_insecure=registry.is_insecure)
        data = self._secrets.registry
        if data is None:
            return target, None
        config = next((data[key] for key in _DOCKER_CONFIGS if key in data), None)
        if config is None:
            raise PreconditionError(
                f"the Secret '{registry.secret}' has no key .dockerconfigjson: `kubectl create secret"
                " docker-registry` makes one"
            )
        return target, login_for(config, target.host, target.repository)

    # -- the download --

    def _fetched(self, image: ImageWanted, version: ArchiveVersion) -> Path:
        if version.size > self._limits.archive_bytes:
            raise ImageFailed(
                "ArchiveTooLarge",
                f"{self._at(image)} has {version.size / GIB:,.1f} GiB, more than the"
                f" {self._limits.archive_bytes / GIB:,.1f} that are taken",
                is_lasting=True,
            )
        archive = self._spool / _spool_name(self._wanted, image, version)
        self._make_room(archive, image, version)
        with self._store_errors(image):
            self._download(archive, image, version)
        digest = _sha256(archive)
        if image.sha256 and digest != image.sha256.lower().removeprefix("sha256:"):
            archive.unlink(missing_ok=True)
            raise ImageFailed(
                "ChecksumMismatch",
                f"{self._at(image)} has the sha256 {digest}, the resource asks for {image.sha256[:80]}",
                is_lasting=True,
            )
        return archive

    def _make_room(self, archive: Path, image: ImageWanted, version: ArchiveVersion) -> None:
        self._spool.mkdir(parents=True, exist_ok=True)
        for other in self._spool.glob(f"{image.role}-*.archive"):
            if other != archive:
                other.unlink(missing_ok=True)
        have = archive.stat().st_size if archive.exists() else 0
        used = sum(map(_size, self._of_all.rglob("*.archive")))
        free = min(shutil.disk_usage(self._spool).free, self._most_of_all + _SPARE_BYTES - used)
        if version.size - have + _SPARE_BYTES > free:
            raise ImageFailed(
                "SpoolFull",
                f"{self._at(image)} has {version.size / GIB:,.1f} GiB, the operator's spool has room for"
                f" {max(free, 0) / GIB:,.1f}: wait for the others, or make it larger",
                is_lasting=False,
            )

    def _download(self, archive: Path, image: ImageWanted, version: ArchiveVersion) -> None:
        have = archive.stat().st_size if archive.exists() else 0
        if have > version.size:
            archive.unlink()
            have = 0
        if have == version.size and have:
            return
        request: dict[str, Any] = {"Bucket": self._wanted.store.bucket, "Key": image.path}
        if have:
            request["Range"] = f"bytes={have}-"
        # Another object of that name, uploaded since, would be glued to what is there.
        answer = self._client().get_object(IfMatch=version.etag, **request)
        begins = _first_byte(answer) if have else 0
        with archive.open("ab" if have and begins == have else "wb") as file:
            left = version.size - (have if begins == have else 0)
            body = answer["Body"]
            while left and (chunk := body.read(min(_CHUNK, left))):
                file.write(chunk)
                left -= len(chunk)
        if left:
            raise ImageFailed(
                "StoreUnavailable",
                f"{self._at(image)} was cut off {left:,} bytes before its end: the download goes on there",
                is_lasting=False,
            )

    # -- others' errors --

    def _client(self) -> Any:
        try:
            import boto3
            import botocore.config
            from botocore import UNSIGNED
        except ImportError as error:
            raise PreconditionError("images from S3 need boto3: pip install 'icestream[operator]'") from error
        store, data = self._wanted.store, self._secrets.store
        options: dict[str, Any] = {}
        if data is not None:
            options = {
                "aws_access_key_id": _value(data, _KEY_IDS),
                "aws_secret_access_key": _value(data, _KEY_SECRETS),
                "aws_session_token": _value(data, _KEY_TOKENS),
            }
            if not options["aws_access_key_id"] or not options["aws_secret_access_key"]:
                raise PreconditionError(
                    f"the Secret '{store.credentials_secret}' lacks {_KEY_IDS[0]} or {_KEY_SECRETS[0]}"
                )
        unsigned = {} if data is not None or self._may_sign else {"signature_version": UNSIGNED}
        config = botocore.config.Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
            s3={"addressing_style": "path" if store.endpoint else "auto"},
            **unsigned,
        )
        session = boto3.Session(region_name=store.region or "us-east-1")
        return session.client("s3", endpoint_url=store.endpoint, config=config, **options)

    def _at(self, image: ImageWanted) -> str:
        return f"s3://{self._wanted.store.bucket}/{image.path}"

    @contextmanager
    def _store_errors(self, image: ImageWanted) -> Iterator[None]:
        import urllib3.exceptions
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code = str(error.response.get("Error", {}).get("Code", ""))
            code = code if re.fullmatch(r"[A-Za-z0-9.]{1,60}", code) else "no code"
            reason, told = _REFUSALS.get(status, ("StoreUnavailable", "cannot be read for now"))
            raise ImageFailed(reason, f"{self._at(image)} {told} ({code})", is_lasting=False) from error
        except (BotoCoreError, urllib3.exceptions.HTTPError, ValueError) as error:
            raise ImageFailed(
                "StoreUnavailable",
                f"{self._at(image)} cannot be read ({type(error).__name__}): check spec.s3.endpoint",
                is_lasting=False,
            ) from error
        except PreconditionError as error:
            raise ImageFailed("PreconditionError", str(error), is_lasting=False) from error
        except OSError as error:
            raise ImageFailed(
                "SpoolFull", f"the operator's spool cannot be written ({error.strerror})", is_lasting=False
            ) from error

    @contextmanager
    def _registry_errors(self) -> Iterator[None]:
        try:
            yield
        except (RegistryRefused, RegistryUnavailable, PreconditionError) as error:
            raise ImageFailed(type(error).__name__, str(error), is_lasting=False) from error


_REFUSALS: Final = {
    404: ("ArchiveNotFound", "is not there: upload the archive, or mend spec.images"),
    403: ("StoreRefused", "may not be read with this login: check spec.s3.credentialsSecret"),
    401: ("StoreRefused", "may not be read with this login: check spec.s3.credentialsSecret"),
    400: ("StoreRefused", "may not be read so: check spec.s3"),
    301: ("StoreRefused", "is in another region: check spec.s3.region"),
    412: ("ArchiveChanged", "was replaced while it was fetched: it is fetched anew"),
}


def _value(data: Mapping[str, bytes], names: tuple[str, ...]) -> str | None:
    found = next((data[name] for name in names if name in data), None)
    return found.decode("utf-8", "replace").strip() if found is not None else None


def _first_byte(answer: Mapping[str, Any]) -> int:
    """Where a part begins; a store that knows no ranges sends the whole."""
    told = re.match(r"bytes (\d{1,18})-", str(answer.get("ContentRange", "")))
    return int(told[1]) if told else 0


def _spool_name(wanted: ImagesWanted, image: ImageWanted, version: ArchiveVersion) -> str:
    text = "\0".join(
        (wanted.store.endpoint or "", wanted.store.bucket, image.path, version.etag, str(version.size))
    )
    return f"{image.role}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.archive"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # another cluster's turn has just removed it
        return 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
