"""What every connector store promises, over memory, file and Kafka's config topic."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError, NotReadyError, PreconditionError
from icestream.cluster.stores.connector_store import (
    ConnectorStore,
    FileStore,
    MemoryStore,
    StoredConnector,
    TargetState,
)
from icestream.cluster.stores.kafka_store import KafkaStore
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics

Open = Callable[[], ConnectorStore]


_NUMBERS = itertools.count(1)


@pytest.fixture(params=["memory", "file", pytest.param("kafka", marks=pytest.mark.network)])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store again, as a restarted worker would."""
    if request.param == "file":
        return lambda: FileStore(tmp_path / "w" / "state.json")
    if request.param == "kafka":
        return kafka_store(request.getfixturevalue("broker"))
    memory = MemoryStore()
    return lambda: memory


def kafka_store(broker: Broker) -> Open:
    settings = {"bootstrap.servers": broker.bootstrap}
    topic = f"configs-{next(_NUMBERS)}"
    Topics(settings).create(topic, 1, 1, {"cleanup.policy": "compact"})

    def open_store() -> KafkaStore:
        store = KafkaStore(settings, topic, topic, lambda name, connector: [{"task": name}])
        store.start()
        store.lead()
        return store

    return open_store


@dataclass
class Heard:
    """A listener that remembers what it was told."""

    connectors: list[str] = field(default_factory=list)
    loggers: list[tuple[str, str]] = field(default_factory=list)

    def connector_changed(self, name: str) -> None:
        self.connectors.append(name)

    def logger_changed(self, namespace: str, level: str) -> None:
        self.loggers.append((namespace, level))


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


def test_a_config_that_changes_gets_another_version_and_a_target_does_not(reopen: Open) -> None:
    store = reopen()
    store.put("one", ONE)
    first = store.load()["one"].version
    store.put("one", StoredConnector(ONE.config, TargetState.PAUSED))
    assert store.load()["one"].version == first != ""
    store.put("one", StoredConnector({**ONE.config, "more": "1"}, TargetState.PAUSED))
    assert store.load()["one"].version != first
    store.close()


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


def test_the_listener_hears_of_every_change(reopen: Open) -> None:
    store, heard = reopen(), Heard()
    store.listen(heard)
    store.put("one", ONE)
    store.put("one", replace(ONE, target=TargetState.PAUSED))
    store.put("one", replace(ONE, target=TargetState.PAUSED, restarts=1))
    store.remove("one")
    store.set_logger("icestream", "DEBUG")
    assert heard.connectors.count("one") >= 4
    assert heard.loggers == [("icestream", "DEBUG")]
    store.close()


def test_a_restart_is_asked_of_those_who_are_there(reopen: Open) -> None:
    store = reopen()
    store.put("one", ONE)
    store.put("one", replace(ONE, restarts=1))
    assert store.load()["one"].restarts == 1
    store.close()


@pytest.mark.network
def test_a_new_leader_shuts_out_the_old_one(broker: Broker) -> None:
    reopen = kafka_store(broker)
    old = reopen()
    old.put("one", ONE)
    new = reopen()
    with pytest.raises(NotReadyError, match="leads the group"):
        old.put("two", TWO)
    new.put("two", TWO)
    assert list(new.load()) == ["one", "two"]
    for store in (old, new):
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


@pytest.mark.network
def test_a_config_that_no_record_takes_is_refused_at_once(broker: Broker) -> None:
    store = kafka_store(broker)()
    with pytest.raises(ConfigError, match="larger than 1,000,000 bytes"):
        store.put("huge", StoredConnector({"name": "huge", "note": "x" * 1_000_001}))
    store.put("one", ONE)
    assert list(store.load()) == ["one"]
    store.close()
