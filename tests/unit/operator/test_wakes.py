"""Whom a change concerns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icestream.operator.keys import Key
from icestream.operator.known_resources import KnownResources
from icestream.operator.references import References
from icestream.operator.wakes import Wakes


class _Secrets:
    """The API server, with one Secret of each name that is asked for."""

    def __init__(self) -> None:
        self.version = "1"

    def get(self, kind: Any, namespace: str, name: str) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": self.version}, "data": {"a": self.version}}


def _setting() -> tuple[Wakes, KnownResources, References, _Secrets, list[Key]]:
    server, known, woken = _Secrets(), KnownResources(), list[Key]()
    references = References(server)  # type: ignore[arg-type]
    return Wakes(known, references, woken.append), known, references, server, woken


def _resource(name: str, version: int = 1, kind: str = "KafkaConnect", **metadata: Any) -> dict[str, Any]:
    own = {"namespace": "n", "name": name, "uid": name, "generation": 1, "resourceVersion": str(version)}
    return {"kind": kind, "metadata": {**own, **metadata}, "spec": {}}


def test_our_own_write_to_a_status_wakes_nobody() -> None:
    wakes, _, _, _, woken = _setting()
    wakes.told_resource(_resource("a"), False)
    woken.clear()
    wakes.told_resource({**_resource("a", 2), "status": {"conditions": []}}, False)
    assert woken == []
    wakes.told_resource(_resource("a", 3, generation=2), False)
    assert woken == [Key("KafkaConnect", "n", "a")]


def test_a_change_of_a_secret_wakes_those_that_refer_to_it_and_no_other_tenant() -> None:
    _, _, references, server, _ = _setting()
    mine, others = Key("KafkaConnect", "n", "a"), Key("KafkaConnect", "m", "b")
    references.read(mine, [("Secret", "s")])
    references.read(others, [("ConfigMap", "s")])
    assert references.changed_secrets() == set()
    server.version = "2"
    assert references.changed_secrets() == {mine}


def test_a_config_map_wakes_its_owner_and_those_that_refer_to_it() -> None:
    wakes, _, references, _, woken = _setting()
    mine = Key("KafkaConnect", "n", "a")
    references.read(mine, [("ConfigMap", "c")])
    wakes.told_config_map({"metadata": {"namespace": "n", "name": "c"}}, False)
    wakes.told_config_map({"metadata": {"namespace": "other", "name": "c"}}, False)
    assert woken == [mine]
    owner = {"kind": "KafkaConnect", "name": "b", "uid": "u", "controller": True}
    wakes.told_child({"metadata": {"namespace": "n", "name": "x", "ownerReferences": [owner]}}, True)
    assert woken[1:] == [Key("KafkaConnect", "n", "b")]


def test_a_connector_that_goes_or_moves_wakes_the_cluster_that_it_leaves() -> None:
    wakes, _, _, _, woken = _setting()
    cluster = Key("KafkaConnect", "n", "a")
    wakes.told_resource(_resource("a"), False)

    def connector(version: int, label: str) -> dict[str, Any]:
        return _resource("c", version, "KafkaConnector", labels={"strimzi.io/cluster": label})

    for told, is_gone in ((connector(2, "b"), False), (connector(3, "b"), True)):
        wakes.told_resource(connector(1, "a"), False)
        woken.clear()
        wakes.told_resource(told, is_gone)
        assert (cluster in woken) == (not is_gone)
    wakes.told_resource(connector(4, "a"), False)
    woken.clear()
    wakes.told_resource(connector(5, "a"), True)
    assert cluster in woken


def test_the_index_keeps_the_newest_of_a_name_and_a_list_tells_what_the_watch_lost() -> None:
    known = KnownResources()
    assert known.put(_resource("a", 5))
    assert not known.put(_resource("a", 4))
    known.drop({**_resource("a"), "metadata": {**_resource("a")["metadata"], "uid": "another"}})
    assert known.get(Key("KafkaConnect", "n", "a")) is not None
    listed: Sequence[dict[str, Any]] = [_resource("b", 6)]
    news = known.replace("KafkaConnect", ["n"], listed, known.all())
    assert news == {Key("KafkaConnect", "n", "a"), Key("KafkaConnect", "n", "b")}
    assert known.get(Key("KafkaConnect", "n", "a")) is None


def test_what_the_watch_tells_while_a_list_is_under_way_is_not_lost() -> None:
    known = KnownResources()
    known.put(_resource("old", 1))
    before = known.all()
    known.put(_resource("new", 7))
    known.put(_resource("old", 8))
    assert known.replace("KafkaConnect", None, [], before) == set()
    assert {key.name for key in known.all()} == {"new", "old"}
    assert known.replace("KafkaConnect", None, [], known.all()) == {
        Key("KafkaConnect", "n", "new"),
        Key("KafkaConnect", "n", "old"),
    }


def test_a_connector_has_the_lock_of_its_cluster() -> None:
    known = KnownResources()
    known.put(_resource("c", 1, "KafkaConnector", labels={"strimzi.io/cluster": "a"}))
    assert known.lock_name(Key("KafkaConnector", "n", "c")) == known.lock_name(Key("KafkaConnect", "n", "a"))
