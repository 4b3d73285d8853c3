"""Which Maven repository Java artifacts come from: Maven Central, or the mirror that the user names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from icestream.api.errors import PreconditionError

CENTRAL: Final = f"https://{'.'.join(('repo1', 'maven', 'org'))}/maven2"
MIRROR: Final = "ICESTREAM_MAVEN_MIRROR"
_OF_ALL: Final = frozenset({"*", "external:*"})
_VARIABLE: Final = re.compile(r"\$\{env\.([^}]+)\}")


@dataclass(frozen=True)
class Repository:
    """Its address has no login, so that messages may show it."""

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def is_mirror(self) -> bool:
        return self.url != CENTRAL


def repository(environ: Mapping[str, str]) -> Repository:
    """The mirror of `$ICESTREAM_MAVEN_MIRROR`, else that of `~/.m2/settings.xml`, else Maven Central."""
    if given := environ.get(MIRROR):
        return _repository(given, MIRROR)
    home = environ.get("HOME")
    settings = (Path(home) if home else Path.home()) / ".m2" / "settings.xml"
    return (_mirror_in(settings, environ) if settings.is_file() else None) or Repository(CENTRAL)


def _repository(given: str, source: str, login: tuple[str, str] | None = None) -> Repository:
    try:
        parts = urlsplit(given.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https"):
        # The value may hold a password.
        raise PreconditionError(f"{source} is not an address of the form https://host/path; correct it")
    place = f"[{host}]" if ":" in host else host
    url = urlunsplit((parts.scheme, f"{place}:{port}" if port else place, parts.path.rstrip("/"), "", ""))
    if parts.username:
        login = (unquote(parts.username), unquote(parts.password or ""))
    return Repository(url, login)


def _mirror_in(settings: Path, environ: Mapping[str, str]) -> Repository | None:
    try:
        content = ElementTree.parse(settings).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise PreconditionError(
            f"{settings} cannot be read ({error}); correct it, or set {MIRROR} to the address of a mirror"
        ) from error

    def text(element: ElementTree.Element, name: str) -> str:
        found = (element.findtext(f"{{*}}{name}") or "").strip()
        return _VARIABLE.sub(lambda match: environ.get(match.group(1), match.group()), found)

    mirrors = [
        (frozenset(part.strip() for part in text(mirror, "mirrorOf").split(",")), mirror)
        for mirror in content.iterfind("{*}mirrors/{*}mirror")
    ]
    # As Maven does: one that names the repository comes before one for all.
    exact = [mirror for of, mirror in mirrors if of == {"central"}]
    others = [m for of, m in mirrors if "!central" not in of and ("central" in of or of & _OF_ALL)]
    for mirror in [*exact, *others]:
        of_login = [
            server
            for server in content.iterfind("{*}servers/{*}server")
            if text(server, "id") == text(mirror, "id")
        ]
        source = f"the mirror '{text(mirror, 'id')}' of {settings}"
        login = None
        if of_login and text(of_login[0], "username"):
            login = (text(of_login[0], "username"), text(of_login[0], "password"))
            if login[1].startswith("{") and login[1].endswith("}"):
                raise PreconditionError(
                    f"the password of {source} is encrypted, which only Maven can read;"
                    f" set {MIRROR}=https://user:password@host/path"
                )
        return _repository(text(mirror, "url"), source, login)
    return None
