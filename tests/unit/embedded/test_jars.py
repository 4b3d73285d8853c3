"""Java libraries from a repository on loopback: fetched once, resumed, verified, refused in one sentence."""

from __future__ import annotations

import base64
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded import downloads, jars, trust
from icestream.java_artifacts import Coordinate
from tests.kubernetes.certificates import Authority
from tests.maven_server import Repository, lock_of, running_proxy, running_repository

NAMES = [f"org.a:part{number}:1.0" for number in range(6)]
FILES = {Coordinate.parse(name).path: os.urandom(40_000 + at) for at, name in enumerate(NAMES)}
ONE = NAMES[:1]
FIRST = Coordinate.parse(NAMES[0])
CONTENT = FILES[FIRST.path]


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, on a machine without proxies and pauses."""
    for name in (*trust._VARIABLES, "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ICESTREAM_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(downloads, "_FIRST_PAUSE_S", 0.0)
    return tmp_path


@pytest.fixture
def repository(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with running_repository(FILES) as running:
        monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", running.url)
        yield running


def lock(folder: Path, coordinates: list[str] = NAMES) -> Path:
    return lock_of(folder / "test.lock", FILES, things=coordinates)


def store(folder: Path) -> Path:
    return folder / "cache" / "jars"


def names_in(folder: Path) -> set[str]:
    """Of all files that are not locks; half ones too."""
    files = (path.name for path in store(folder).rglob("*") if path.is_file() and not path.is_symlink())
    return {name for name in files if name != ".lock"}


def test_a_set_is_a_folder_with_its_files_and_is_fetched_once(
    repository: Repository, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = jars.fetch("things", lock(tmp_path))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        path.rpartition("/")[2]: content for path, content in FILES.items()
    }
    assert capfd.readouterr().err == (
        f"fetching Java libraries: things from {repository.url} (0.2 MB, once)\n"
    )
    assert jars.fetch("things", lock(tmp_path)) == folder
    assert sorted(path for path, _ in repository.asked) == sorted(f"/maven2/{path}" for path in FILES)
    assert capfd.readouterr().err == ""


def test_files_come_side_by_side(repository: Repository, tmp_path: Path) -> None:
    # The first is answered once all six have asked.
    repository.together = threading.Barrier(len(NAMES))
    jars.fetch("things", lock(tmp_path))
    assert len(repository.asked) == len(NAMES)


def test_sets_that_are_wanted_together_are_fetched_together_and_share_files(
    repository: Repository, tmp_path: Path
) -> None:
    both = lock_of(tmp_path / "test.lock", FILES, first=NAMES[:2], second=NAMES[1:3])
    found = jars.fetch_files(["first", "second"], both)
    assert [file.read_bytes() for file in found] == list(FILES.values())[:3]
    assert len(repository.asked) == 3


def test_a_transfer_that_breaks_is_resumed(repository: Repository, tmp_path: Path) -> None:
    repository.cut_after = 15_000
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT
    assert [range_ for _, range_ in repository.asked] == [None, "bytes=15000-", "bytes=30000-"]


def test_what_an_earlier_process_has_left_is_resumed(repository: Repository, tmp_path: Path) -> None:
    part = store(tmp_path) / Path(FIRST.path).with_name(f".{FIRST.file_name}.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:25_000])
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT
    assert repository.asked == [(f"/maven2/{FIRST.path}", "bytes=25000-")]
    assert names_in(tmp_path) == {FIRST.file_name}


@pytest.mark.parametrize("size", [25_000, 40_000, 50_000])
def test_what_was_left_of_another_file_is_fetched_anew(
    repository: Repository, tmp_path: Path, size: int
) -> None:
    part = store(tmp_path) / Path(FIRST.path).with_name(f".{FIRST.file_name}.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * size)
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT
    assert repository.asked[-1] == (f"/maven2/{FIRST.path}", None)


def test_a_server_that_knows_no_ranges_sends_the_whole_file(repository: Repository, tmp_path: Path) -> None:
    repository.takes_ranges = False
    part = store(tmp_path) / Path(FIRST.path).with_name(f".{FIRST.file_name}.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:25_000])
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT


def test_a_server_that_is_busy_is_asked_again(repository: Repository, tmp_path: Path) -> None:
    repository.statuses = [503, 429, 500]
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT


def test_a_wrong_content_never_counts(repository: Repository, tmp_path: Path) -> None:
    repository.files[FIRST.path] = bytes(len(CONTENT))
    with pytest.raises(PreconditionError) as refused:
        jars.fetch("things", lock(tmp_path, ONE))
    assert f"{repository.url}/{FIRST.path} has the SHA-256 " in str(refused.value)
    assert "as in the lock file; see that this mirror follows Maven Central" in str(refused.value)
    assert names_in(tmp_path) == set()
    # Once more: a proxy may have spoilt the first.
    assert len(repository.asked) == 2


def test_a_page_in_place_of_a_file_is_refused_by_its_size(repository: Repository, tmp_path: Path) -> None:
    repository.files[FIRST.path] = b"<html>please log in</html>"
    with pytest.raises(PreconditionError, match=r"has 26 bytes, not 40,000 as in the lock file; see that"):
        jars.fetch("things", lock(tmp_path, ONE))


def test_a_file_that_was_cut_off_later_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    file.write_bytes(CONTENT[:10])
    folder = jars.fetch("things", lock(tmp_path, ONE))
    assert (folder / FIRST.file_name).read_bytes() == CONTENT


def test_what_a_mirror_lacks_is_named(repository: Repository, tmp_path: Path) -> None:
    del repository.files[FIRST.path]
    with pytest.raises(PreconditionError) as refused:
        jars.fetch("things", lock(tmp_path, ONE))
    assert str(refused.value) == (
        f"{repository.url} has no {FIRST.path} (404); see that this mirror follows Maven Central, or set"
        " ICESTREAM_MAVEN_MIRROR to another one"
    )
    assert len(repository.asked) == 1


def test_a_repository_that_is_away_is_tried_several_times(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_repository({}) as gone:
        pass
    monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", gone.url)
    with pytest.raises(PreconditionError) as refused:
        jars.fetch("things", lock(own_home, ONE))
    assert str(refused.value).startswith(f"cannot download {FIRST.file_name} from {gone.url} (")
    assert str(refused.value).endswith(
        "); check the network, or set HTTPS_PROXY to your proxy or ICESTREAM_MAVEN_MIRROR to a mirror,"
        " then try again"
    )


def test_a_transfer_that_always_breaks_ends_and_keeps_what_came(
    repository: Repository, tmp_path: Path
) -> None:
    repository.cut_after = 1_000
    with pytest.raises(PreconditionError, match="cannot download part0"):
        jars.fetch("things", lock(tmp_path, ONE))
    assert len(repository.asked) == 5
    assert names_in(tmp_path) == {f".{FIRST.file_name}.part"}


def test_a_full_disk_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(downloads, "_verify", full)
    with pytest.raises(PreconditionError, match=r"^the disk of .* is full; free some space or set ICESTREAM"):
        jars.fetch("things", lock(tmp_path, ONE))


def test_a_disk_that_is_too_small_is_named_before_anything_is_fetched(
    repository: Repository, tmp_path: Path
) -> None:
    path = lock(tmp_path, ONE)
    path.write_text(path.read_text().replace("size = 40000", f"size = {10**18}"))
    with pytest.raises(PreconditionError, match="MB free and 1000000000100 MB are needed; free some space"):
        jars.fetch("things", path)
    assert repository.asked == []


def test_the_login_of_a_mirror_is_sent_and_not_shown(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.login = "Basic " + base64.b64encode(b"alice:open sesame").decode()
    with_login = repository.url.replace("://", "://alice:open%20sesame@")
    monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", f"{with_login}/")
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT
    said = capfd.readouterr().err
    assert repository.url in said
    assert "alice" not in said

    file.unlink()
    monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", with_login.replace("open", "closed"))
    with pytest.raises(PreconditionError) as refused:
        jars.fetch("things", lock(tmp_path, ONE))
    assert f"{repository.url} refused {FIRST.path} (401); set ICESTREAM_MAVEN_MIRROR=" in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_the_mirror_and_its_login_may_be_in_mavens_settings(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ICESTREAM_MAVEN_MIRROR")
    repository.login = "Basic " + base64.b64encode(b"alice:sesame").decode()
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        f"""<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">
          <servers><server><id>ours</id><username>alice</username><password>sesame</password></server></servers>
          <mirrors><mirror><id>ours</id><mirrorOf>*</mirrorOf><url>{repository.url}/</url></mirror></mirrors>
        </settings>"""
    )
    (file,) = jars.fetch_files(["things"], lock(tmp_path, ONE))
    assert file.read_bytes() == CONTENT
    assert "sesame" not in capfd.readouterr().err


# -- certificates and proxies --


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"])
def test_the_authority_of_a_company_is_trusted_where_pip_or_curl_trusts_it(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    authority = Authority(own_home)
    with running_repository(FILES, authority.issue("server", "server")) as secure:
        monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", secure.url)
        with pytest.raises(PreconditionError) as refused:
            jars.fetch("things", lock(own_home, ONE))
        assert f"the certificate of {secure.url} was refused (" in str(refused.value)
        assert str(refused.value).endswith(
            "set SSL_CERT_FILE to a file with the certificate authority of your company or proxy"
        )
        monkeypatch.setenv(variable, str(authority.certificate))
        (file,) = jars.fetch_files(["things"], lock(own_home, ONE))
    assert file.read_bytes() == CONTENT


def test_the_authority_may_be_in_pips_configuration(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(own_home)
    (own_home / ".config" / "pip").mkdir(parents=True)
    (own_home / ".config" / "pip" / "pip.conf").write_text(f"[global]\ncert = {authority.certificate}\n")
    with running_repository(FILES, authority.issue("server", "server")) as secure:
        monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", secure.url)
        (file,) = jars.fetch_files(["things"], lock(own_home, ONE))
    assert file.read_bytes() == CONTENT


def test_a_bundle_that_cannot_be_read_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "away.pem"))
    with pytest.raises(PreconditionError, match=r"^REQUESTS_CA_BUNDLE names .*away.pem .* cannot be read"):
        jars.fetch("things", lock(tmp_path, ONE))


def test_downloads_go_through_the_proxy_of_the_environment(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(own_home)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    pair = authority.issue("server", "server")
    with running_repository(FILES, pair) as secure, running_proxy() as proxy:
        monkeypatch.setenv("ICESTREAM_MAVEN_MIRROR", secure.url)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        (file,) = jars.fetch_files(["things"], lock(own_home, ONE))
        assert proxy.asked == [secure.url.removeprefix("https://").removesuffix("/maven2")]
    assert file.read_bytes() == CONTENT


def test_a_proxy_of_an_unknown_kind_is_refused_without_its_login(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://alice:sesame@proxy")
    with pytest.raises(PreconditionError, match="names a proxy that cannot be used; set it") as refused:
        jars.fetch("things", lock(tmp_path, ONE))
    assert "sesame" not in str(refused.value)


# -- several processes --


def test_two_processes_fetch_a_file_once(repository: Repository, tmp_path: Path) -> None:
    code = "import sys, pathlib; from icestream.embedded import jars"
    code += "; print(jars.fetch('things', pathlib.Path(sys.argv[1])).name)"
    command = [sys.executable, "-c", code, str(lock(tmp_path))]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate(timeout=120)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(said) == 1
    assert len(repository.asked) == len(NAMES)
