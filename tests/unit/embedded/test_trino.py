"""What is unpacked of Trino's archive, from a small one of the same form."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded import trino

SERVER = f"trino-server-{trino.VERSION}"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Jars that plugins share are in the folder of the first, and links in the others."""
    files = [
        "lib/server.jar",
        "plugin/bigquery/own.jar",
        "plugin/bigquery/shared.jar",
        "plugin/iceberg/own.jar",
    ]
    path = tmp_path / "download" / "trino.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as packed:
        for name in files:
            member = tarfile.TarInfo(f"{SERVER}/{name}")
            member.size = len(name)
            packed.addfile(member, io.BytesIO(name.encode()))
        link = tarfile.TarInfo(f"{SERVER}/plugin/iceberg/shared.jar")
        link.type, link.linkname = tarfile.LNKTYPE, f"{SERVER}/plugin/bigquery/shared.jar"
        packed.addfile(link)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trino, "home", lambda: tmp_path)
    monkeypatch.setattr(trino, "require_space", lambda *_: None)
    monkeypatch.setattr(trino, "fetch_files", lambda _: [tmp_path / "download" / "trino.tar.gz"])
    return tmp_path


def unpacked(server: Path) -> dict[str, str]:
    return {str(file.relative_to(server)): file.read_text() for file in server.rglob("*") if file.is_file()}


def test_only_the_plugin_that_is_needed_is_left_and_it_has_the_jars_of_others(
    archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trino, "forget", lambda _: archive.unlink())
    server = trino.install(lambda _: None)
    assert unpacked(server) == {
        "lib/server.jar": "lib/server.jar",
        "plugin/iceberg/own.jar": "plugin/iceberg/own.jar",
        "plugin/iceberg/shared.jar": "plugin/bigquery/shared.jar",
    }
    assert [folder.name for folder in (server / "plugin").iterdir()] == ["iceberg"]
    assert not archive.exists()


def test_half_plugins_of_an_earlier_version_go(home: Path) -> None:
    server = home / f"trino-{trino.VERSION}"
    for plugin in ("bigquery", "iceberg"):
        (server / "plugin" / plugin).mkdir(parents=True)
    assert trino.install(lambda _: None) == server
    assert [folder.name for folder in (server / "plugin").iterdir()] == ["iceberg"]


def test_an_archive_that_is_cut_off_leaves_nothing(
    archive: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(PreconditionError, match=f"could not be unpacked .*; delete {archive} and"):
        trino.install(lambda _: None)
    assert trino.installed() is None
    assert not list(home.glob(".trino*"))
