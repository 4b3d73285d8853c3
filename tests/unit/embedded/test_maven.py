"""Which repository is chosen: the variable, a mirror in Maven's settings, Maven Central."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded.maven import CENTRAL, Repository, repository


def settings(home: Path, *mirrors: tuple[str, str], servers: str = "") -> dict[str, str]:
    """The environment of a user whose settings have these mirrors: what they stand for, and where."""
    each = "".join(
        f"<mirror><id>m{at}</id><mirrorOf>{of}</mirrorOf><url>{url}</url></mirror>"
        for at, (of, url) in enumerate(mirrors)
    )
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(
        f"<settings><mirrors>{each}</mirrors><servers>{servers}</servers></settings>"
    )
    return {"HOME": str(home)}


def test_without_any_setting_it_is_maven_central(tmp_path: Path) -> None:
    assert repository({"HOME": str(tmp_path)}) == Repository(CENTRAL)
    assert not repository({"HOME": str(tmp_path)}).is_mirror


def test_the_variable_comes_before_mavens_settings(tmp_path: Path) -> None:
    environ = settings(tmp_path, ("*", "https://settings.example.org/repo"))
    assert repository(environ).url == "https://settings.example.org/repo"
    environ["ICESTREAM_MAVEN_MIRROR"] = "https://alice:a%40b@variable.example.org:8443/repo/"
    assert repository(environ) == Repository("https://variable.example.org:8443/repo", ("alice", "a@b"))
    assert "a@b" not in repr(repository(environ))


@pytest.mark.parametrize(
    ("of", "is_meant"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("snapshots, central", True),
        ("*,!central", False),
        ("snapshots", False),
        ("external:http:*", False),
    ],
)
def test_a_mirror_is_meant_for_central_as_maven_reads_it(tmp_path: Path, of: str, is_meant: bool) -> None:
    assert repository(settings(tmp_path, (of, "https://m.example.org"))).is_mirror is is_meant


def test_a_mirror_of_central_comes_before_one_of_everything(tmp_path: Path) -> None:
    environ = settings(tmp_path, ("*", "https://all.example.org"), ("central", "https://central.example.org"))
    assert repository(environ).url == "https://central.example.org"


def test_the_login_of_a_server_may_name_variables(tmp_path: Path) -> None:
    server = "<server><id>m0</id><username>alice</username><password>${env.TOKEN}</password></server>"
    environ = settings(tmp_path, ("*", "https://m.example.org"), servers=server)
    assert repository({**environ, "TOKEN": "sesame"}).login == ("alice", "sesame")


def test_a_password_that_only_maven_can_read_is_named(tmp_path: Path) -> None:
    server = "<server><id>m0</id><username>alice</username><password>{COQLCE6DU6=}</password></server>"
    with pytest.raises(PreconditionError, match=r"password of the mirror 'm0' of .* is encrypted") as refused:
        repository(settings(tmp_path, ("*", "https://m.example.org"), servers=server))
    assert "COQ" not in str(refused.value)


def test_settings_that_are_no_xml_are_named(tmp_path: Path) -> None:
    environ = settings(tmp_path)
    (tmp_path / ".m2" / "settings.xml").write_text("<settings>")
    with pytest.raises(PreconditionError, match=r"settings.xml cannot be read \(.*; correct it, or set ICE"):
        repository(environ)


@pytest.mark.parametrize(
    "given", ["m.example.org/repo", "ftp://alice:sesame@host/", "https://", "https://[::1"]
)
def test_an_address_of_another_form_is_refused_without_its_login(given: str) -> None:
    with pytest.raises(PreconditionError, match=r"^ICESTREAM_MAVEN_MIRROR is not an address") as refused:
        repository({"ICESTREAM_MAVEN_MIRROR": given})
    assert "sesame" not in str(refused.value)
