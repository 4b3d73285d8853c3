"""What every connector store promises, over memory and file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.cluster.stores import ConnectorStore, FileStore, MemoryStore, StoredConnector, TargetState

Open = Callable[[], ConnectorStore]


@pytest.fixture(params=["memory", "file"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store again, as a restarted worker would."""
    memory = MemoryStore()
    return (
        (lambda: memory) if request.param == "memory" else (lambda: FileStore(tmp_path / "w" / "state.json"))
    )


ONE = StoredConnector({"name": "one", "note": 'ä "quoted" \n line'}, TargetState.STARTED)
TWO = StoredConnector({"name": "two"}, TargetState.STOPPED)


def test_begins_empty(reopen: Open) -> None:
    store = reopen()
    assert store.load() == {}
    store.close()


def test_keeps_what_was_put_in_order(reopen: Open) -> None:
    store = reopen()
    store.put("two", TWO)
    store.put("one", ONE)
    store.close()
    again = reopen()
    assert again.load() == {"two": TWO, "one": ONE}
    assert list(again.load()) == ["two", "one"]
    again.close()


def test_the_last_put_wins(reopen: Open) -> None:
    store = reopen()
    store.put("one", ONE)
    store.put("one", StoredConnector(ONE.config, TargetState.PAUSED))
    store.close()
    again = reopen()
    assert again.load()["one"].target is TargetState.PAUSED
    again.close()


def test_removes_and_forgives_what_is_not_there(reopen: Open) -> None:
    store = reopen()
    store.put("one", ONE)
    store.put("two", TWO)
    store.remove("one")
    store.remove("nobody")
    store.close()
    again = reopen()
    assert again.load() == {"two": TWO}
    again.close()


def test_what_was_loaded_is_a_copy(reopen: Open) -> None:
    store = reopen()
    store.load()["one"] = ONE
    assert store.load() == {}
    store.close()


def test_a_second_worker_is_kept_away(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = FileStore(path)
    with pytest.raises(PreconditionError, match="another worker uses"):
        FileStore(path)
    first.close()
    FileStore(path).close()


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state.json")
    store.put("one", ONE)
    store.close()
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


def test_a_half_written_temporary_file_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    store = FileStore(path)
    store.put("one", ONE)
    store.close()
    Path(f"{path}.tmp").write_text('{"format": 1, "conn')
    again = FileStore(path)
    assert again.load() == {"one": ONE}
    again.close()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', json.dumps({"format": 9, "connectors": {}})]
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(PreconditionError, match=r"state\.json"):
        FileStore(path)
    assert path.read_text() == text
