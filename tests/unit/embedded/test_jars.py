"""What is asked of Ivy, and what counts as fetched. The download itself is in the integration tests."""

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded import jars


def test_every_coordinate_is_a_dependency_with_its_own_jar_and_its_run_time_needs() -> None:
    text = jars.ivy_file_for(["org.a:one:1.0", "org.b:two_2.13:2"])
    assert '<dependency org="org.a" name="one" rev="1.0" conf="default->master,runtime"/>' in text
    assert '<dependency org="org.b" name="two_2.13" rev="2" conf="default->master,runtime"/>' in text


def test_a_module_may_be_wanted_with_and_without_a_classifier() -> None:
    text = jars.ivy_file_for(["org.a:one:1.0", "org.a:one:1.0:tests"])
    assert text.count("<dependency ") == 1
    assert '<artifact name="one" type="jar" ext="jar"/>' in text
    assert '<artifact name="one" type="jar" ext="jar" m:classifier="tests"/>' in text


def test_a_malformed_coordinate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'org\.a:one' is not of the form group:module:version"):
        jars.ivy_file_for(["org.a:one"])


def test_the_proxy_of_the_environment_reaches_java() -> None:
    assert jars.proxy_options({"https_proxy": "http://squid.example.net:3128"}) == [
        "-Dhttps.proxyHost=squid.example.net",
        "-Dhttps.proxyPort=3128",
    ]
    assert jars.proxy_options({}) == []


def test_half_a_download_never_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICESTREAM_HOME", str(tmp_path))

    def half(described: Path, libs: Path, log: Path) -> bool:
        libs.mkdir()
        (libs / "one-1.0.jar").write_bytes(b"PK")
        log.write_text("no route to host")
        return False

    monkeypatch.setattr(jars, "_run_ivy", half)
    with pytest.raises(
        PreconditionError, match=r"cannot download org.a:one:1.0 from Maven Central; check the"
    ):
        jars.fetch("org.a", "one", "1.0")
    assert [entry.name for entry in (tmp_path / "jars").iterdir() if entry.is_dir()] == []


def test_what_is_there_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICESTREAM_HOME", str(tmp_path))
    runs = []

    def whole(described: Path, libs: Path, log: Path) -> bool:
        runs.append(described.read_text())
        libs.mkdir()
        (libs / "one-1.0.jar").write_bytes(b"PK")
        return True

    monkeypatch.setattr(jars, "_run_ivy", whole)
    first = jars.fetch_all("peer", ["org.a:one:1.0", "org.b:two:2.0"])
    assert jars.fetch_all("peer", ["org.a:one:1.0", "org.b:two:2.0"]) == first
    assert len(runs) == 1
    assert jars.fetch_all("peer", ["org.a:one:1.0", "org.b:two:2.1"]) != first
