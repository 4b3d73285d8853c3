"""An image without an engine: its archive unpacked, and its processes in namespaces of their own, with a
read-only root, the image's user, entry point and variables. The network is that of this machine."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.kit.programs import require_programs

PATIENCE = 240.0


def require() -> None:
    """Skip the test that asks where no image can be built and run."""
    if os.getuid() != 0:
        pytest.skip("building a base and changing the root directory need root")
    require_programs("buildah", "debootstrap", "unshare", "java")
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True)
    if tried.returncode != 0:
        pytest.skip("namespaces cannot be made on this machine")


_OF_THE_MACHINE = ("etc/hosts", "etc/resolv.conf")
"""Files that every engine puts into a container: without them it does not know its own name."""


@dataclass(frozen=True)
class Image:
    root: Path
    config: Mapping[str, object]
    """As the image says it: `Env`, `User`, `Entrypoint`, `Cmd`, `Labels` …"""

    def variables(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.config["Env"])  # type: ignore[attr-defined]

    def argv(self, arguments: Sequence[str], *, command: Sequence[str] | None = None) -> list[str]:
        """What an engine would run: `command` stands in for the entry point, as in a pod."""
        start = list(self.config["Entrypoint"]) if command is None else list(command)  # type: ignore[call-overload]
        return [*start, *arguments]


def unpacked(archive: Path, folder: Path) -> Image:
    """The one layer of an archive of `docker save`'s form, as root would unpack it."""
    with tarfile.open(archive) as outer:
        outer.extractall(folder / "archive", filter="data")
    (described,) = json.loads((folder / "archive" / "manifest.json").read_text())
    config = json.loads((folder / "archive" / described["Config"]).read_text())["config"]
    (layer,) = described["Layers"]
    root = folder / "root"
    root.mkdir()
    subprocess.run(
        ["tar", "--numeric-owner", "-xpf", folder / "archive" / layer, "-C", root], check=True, timeout=300
    )
    shutil.rmtree(folder / "archive")
    for name in _OF_THE_MACHINE:
        (root / name).touch()
    return Image(root, config)


@dataclass
class Container:
    pid: int
    """Of the first process, as this machine counts."""
    holder: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def ended(self) -> int:
        """Its exit code."""
        return self.holder.wait(PATIENCE)


@contextmanager
def running(
    image: Image,
    arguments: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    data: Path | None = None,
) -> Iterator[Container]:
    """A container of the image; `data` is mounted at /mnt. Whatever it started is gone afterwards."""
    root = shlex.quote(str(image.root))
    mounts = [
        f"mount --bind {root} {root}",
        f"mount -o remount,bind,ro {root}",
        f"mount -t proc proc {root}/proc",
        f"mount --rbind /dev {root}/dev",
        *(f"mount --bind /{name} {root}/{name}" for name in _OF_THE_MACHINE),
        # The only places that may be written, as emptyDir in a pod.
        f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
        f"mount -t tmpfs -o mode=0770,uid=185,gid=0 tmpfs {root}/home/icestream",
        *([f"mount --bind {shlex.quote(str(data))} {root}/mnt"] if data else []),
    ]
    variables = [f"{name}={value}" for name, value in {**image.variables(), **(env or {})}.items()]
    argv = ["env", "-i", *variables, *image.argv(arguments, command=command)]
    entered = ["chroot", f"--userspec={image.config['User']}", str(image.root), *argv]
    script = " && ".join([*mounts, f"exec {shlex.join(entered)}"])
    with log.open("wb") as output:
        holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", script],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield Container(_first_process(holder), holder, log)
    finally:
        # Its first process takes all others of the namespace with it, and unshare takes that one.
        holder.kill()
        holder.wait(60)


def _first_process(holder: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and holder.poll() is None:
        try:
            children = psutil.Process(holder.pid).children()
        except psutil.NoSuchProcess:
            break
        if children:
            return children[0].pid
        time.sleep(0.02)
    return -1


def run(image: Image, *arguments: str, log: Path, **options: object) -> tuple[int, str]:
    """A container that ends by itself: its exit code and what it printed."""
    with running(image, arguments, log=log, **options) as container:  # type: ignore[arg-type]
        return container.ended(), container.output()
