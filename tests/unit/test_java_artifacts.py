"""The lock files of Java artifacts: how they are read and written, and that they are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icestream.java_artifacts import LOCK, Coordinate, read_lock, root
from scripts import lock_java
from tests.java_libraries import LOCK as OF_TESTS

ROOT = Path(__file__).parents[2]
LOCKS = (LOCK, OF_TESTS)
_COORDINATE = re.compile(r"\b(?:org|io|com)(?:\.[a-z\d-]+)+:[\w.-]+:\d[\w.-]*\w")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("org.a:one:1.0", "org/a/one/1.0/one-1.0.jar"),
        ("org.a:one:1.0:tests", "org/a/one/1.0/one-1.0-tests.jar"),
        ("org.a:one:1.0@tar.gz", "org/a/one/1.0/one-1.0.tar.gz"),
        ("org.a:one:1.0:all@zip", "org/a/one/1.0/one-1.0-all.zip"),
    ],
)
def test_a_coordinate_has_its_place_in_a_repository(text: str, path: str) -> None:
    assert Coordinate.parse(text).path == path
    assert str(Coordinate.parse(text)) == text


@pytest.mark.parametrize("text", ["org.a:one", "org.a::1.0", "org.a:one:1.0:x:y", ""])
def test_a_malformed_coordinate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form group:artifact:version"):
        Coordinate.parse(text)


@pytest.mark.parametrize("lock", LOCKS, ids=["product", "tests"])
def test_every_set_is_whole(lock: Path) -> None:
    for name, given in read_lock(lock).items():
        coordinates = [artifact.coordinate for artifact in given.artifacts]
        assert set(given.roots) <= set(coordinates), name
        # They lie side by side in the folder of the set.
        assert len({one.file_name for one in coordinates}) == len(coordinates), name
        assert all(one.size > 0 and re.fullmatch("[0-9a-f]{64}", one.sha256) for one in given.artifacts)
        if given.alone:
            assert set(given.roots) == set(coordinates), name


@pytest.mark.parametrize("lock", LOCKS, ids=["product", "tests"])
def test_a_lock_file_has_no_address_and_is_as_make_lock_writes_it(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    found = {name: given.artifacts for name, given in read_lock(lock).items()}
    assert lock_java.written(text, found) == text


def test_the_lock_files_agree_on_what_is_in_both() -> None:
    known = {one.coordinate: one for given in read_lock(LOCK).values() for one in given.artifacts}
    for given in read_lock(OF_TESTS).values():
        for artifact in given.artifacts:
            assert known.get(artifact.coordinate, artifact) == artifact


def test_docs_and_settings_name_coordinates_of_the_lock_file() -> None:
    locked = {str(one) for given in read_lock().values() for one in given.roots}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "k8s").rglob("*.yaml")]
    named = {match: page for page in pages for match in _COORDINATE.findall(page.read_text())}
    assert len(named) >= 3
    assert {coordinate: page for coordinate, page in named.items() if coordinate not in locked} == {}


def test_the_root_of_a_set_is_what_it_is_made_for() -> None:
    assert root("kafka").artifact == "kafka_2.13"


# -- what Ivy is asked --


def ivy_file_for(folder: Path, roots: str, alone: str = "false") -> str:
    lock = folder / "test.lock"
    lock.write_text(f"[sets.things]\nalone = {alone}\nroots = {roots}\n")
    return lock_java.ivy_file(read_lock(lock)["things"])


def test_every_root_is_a_dependency_with_its_own_jar_and_its_run_time_needs(tmp_path: Path) -> None:
    text = ivy_file_for(tmp_path, '["org.a:one:1.0", "org.b:two_2.13:2"]')
    assert '<dependency org="org.a" name="one" rev="1.0" conf="default->master,runtime"/>' in text
    assert '<dependency org="org.b" name="two_2.13" rev="2" conf="default->master,runtime"/>' in text


def test_a_module_may_be_wanted_with_and_without_a_classifier(tmp_path: Path) -> None:
    text = ivy_file_for(tmp_path, '["org.a:one:1.0", "org.a:one:1.0:tests"]')
    assert text.count("<dependency ") == 1
    assert '<artifact name="one" type="jar" ext="jar"/>' in text
    assert '<artifact name="one" type="jar" ext="jar" m:classifier="tests"/>' in text


def test_an_archive_is_wanted_without_what_it_was_built_from(tmp_path: Path) -> None:
    text = ivy_file_for(tmp_path, '["org.a:server:1@tar.gz"]', alone="true")
    assert 'conf="default->master" transitive="false"><artifact name="server" type="tar.gz"' in text
