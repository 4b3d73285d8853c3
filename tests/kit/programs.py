"""Programs that some tests need and not every machine has, and the Debian package of each.

A test whose program is missing is skipped. The last lines of the run name what is missing, and the command
that installs it: `tests/kit/run_report.py` reads the reasons that are made here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import Final, NoReturn

import pytest

PACKAGES: Final = {
    "buildah": "buildah",
    "chromium": "chromium",
    "curl": "curl",
    "debootstrap": "debootstrap",
    "docker-registry": "docker-registry",
    "etcd": "etcd-server",
    "htpasswd": "apache2-utils",
    "java": "default-jre-headless",
    "jq": "jq",
    "mariadbd": "mariadb-server-core mariadb-client-core",
    "nginx": "nginx-light",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "shellcheck": "shellcheck",
    "skopeo": "skopeo",
    "unshare": "util-linux",
}
INSTALL: Final = "apt-get install "
PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
"""Debian has servers where the PATH of an ordinary user does not lead."""
_OTHER_NAMES: Final = {"chromium": ("chromium-browser", "google-chrome")}


def find_program(name: str) -> str | None:
    names = (name, *_OTHER_NAMES.get(name, ()))
    return next((found for one in names if (found := shutil.which(one, path=PATH))), None)


def needs_program(*names: str) -> pytest.MarkDecorator:
    """Marks a test, or a module as its `pytestmark`: it is skipped where one of the programs is missing."""
    missing = _missing(names)
    return pytest.mark.skipif(bool(missing), reason=_reason(missing))


def require_program(name: str) -> str:
    """The path of a program; skips the test that asks where it is missing. For fixtures."""
    require_programs(name)
    return str(find_program(name))


def require_programs(*names: str) -> None:
    if missing := _missing(names):
        pytest.skip(_reason(missing))


def skip_without(what: str, how: str) -> NoReturn:
    """Skip a test because of something that no package of Debian brings; `how` says where it is from."""
    pytest.skip(_missing_reason(what, how))


def _missing_reason(what: str, how: str) -> str:
    return f"missing {what}: {how}"


def _missing(names: Iterable[str]) -> list[str]:
    return [name for name in names if find_program(name) is None]


def _reason(missing: Iterable[str]) -> str:
    names = list(missing)
    packages = " ".join(PACKAGES[name] for name in names)
    return _missing_reason(", ".join(names), INSTALL + " ".join(sorted({*packages.split()})))
