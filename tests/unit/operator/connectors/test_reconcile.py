"""Turns of a connector: what is asked of workers, what is told, and what is never done twice."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from icestream.api.errors import (
    ConfigError,
    IcestreamError,
    NotReadyError,
    PreconditionError,
    Problem,
    WorkerUnreachable,
)
from icestream.operator.connectors import Timing, delete_surplus, reconcile_connectors
from tests.unit.operator.connectors.fakes import Workers, World, conditions

RESTART = "strimzi.io/restart"
RESTART_TASK = "strimzi.io/restart-task"
OFFSETS = "strimzi.io/connector-offsets"


@pytest.mark.parametrize("state", ["running", "paused", "stopped"])
def test_a_new_connector_is_created_in_its_state(state: str) -> None:
    world = World(state=state)
    outcome = world.turn()
    assert world.workers.changes() == [("create", state.upper())]
    assert world.workers.configs["sink"] == {"name": "sink", "connector.class": "C", "tasks.max": "1"}
    assert conditions(outcome) == [("Ready", "")]
    assert outcome.requeue_after is not None


def test_a_connector_that_is_as_asked_for_is_left_alone() -> None:
    world = World().settled()
    outcome = world.turn()
    assert world.workers.changes() == []
    assert outcome.requeue_after is None


def test_the_status_tells_what_rest_says() -> None:
    world = World().settled()
    status = world.turn().status
    assert status["observedGeneration"] == 1
    assert status["connectorStatus"] == world.workers.status_answer("sink")
    assert status["topics"] == ["a", "b"]
    assert status["tasksMax"] == 1


def test_tasks_are_counted_where_no_maximum_is_set() -> None:
    world = World(tasksMax=None).settled()
    world.workers.tasks["sink"] = ["RUNNING"] * 3
    assert world.turn().status["tasksMax"] == 3


def test_the_time_of_a_condition_stays_while_nothing_changes() -> None:
    world = World().settled()
    world.pass_minutes(5)
    assert world.turn().status["conditions"][0]["lastTransitionTime"].startswith("2026-11-18T12:00:00")


def test_another_config_is_set_and_then_the_state() -> None:
    world = World().settled()
    world.resource["spec"] |= {"config": {"topics": "t"}, "state": "paused"}
    world.turn()
    assert world.workers.changes() == [("put_config",), ("pause",)]
    assert world.workers.configs["sink"]["topics"] == "t"


def test_a_key_that_somebody_added_by_rest_goes() -> None:
    world = World().settled()
    world.workers.configs["sink"]["added"] = "x"
    world.turn()
    assert "added" not in world.workers.configs["sink"]


def test_states_follow_the_resource() -> None:
    world = World().settled()
    for state in ("paused", "stopped", "paused", "running", "stopped", "running"):
        world.resource["spec"]["state"] = state
        world.turn()
        assert world.workers.states["sink"] == state.upper()


def test_a_failed_connector_that_should_pause_is_told_and_can_be_stopped() -> None:
    world = World().settled()
    world.fail(connector=True)
    world.resource["spec"]["state"] = "paused"
    assert conditions(world.turn()) == [("NotReady", "ConnectRestException")]
    world.resource["spec"]["state"] = "stopped"
    world.turn()
    assert world.workers.states["sink"] == "STOPPED"


def test_failed_tasks_are_named() -> None:
    world = World().settled()
    world.workers.tasks["sink"] = ["FAILED", "RUNNING", "FAILED"]
    (told,) = world.turn().status["conditions"]
    assert told["type"] == "NotReady"
    assert told["message"] == "The following tasks have failed: 0, 2, see connectorStatus for more details."


def test_a_rebalance_is_waited_for() -> None:
    world = World()
    world.workers.refusals["create"] = [NotReadyError("rebalance")] * 3
    assert conditions(world.turn()) == [("Ready", "")]
    assert world.slept == [0.2, 0.4, 0.8]


def test_a_rebalance_without_end_is_told_and_looked_at_again() -> None:
    world = World()
    world.workers.refusals["create"] = [NotReadyError("rebalance")] * 99
    outcome = world.turn()
    assert conditions(outcome) == [("NotReady", "ConnectRestException")]
    assert outcome.requeue_after is not None


def test_a_refused_config_is_told_in_the_workers_words() -> None:
    world = World()
    world.workers.refusals["create"] = [ConfigError([Problem("topics", "topics is missing")])]
    outcome = world.turn()
    assert outcome.status["conditions"][0]["message"] == "topics is missing"
    assert world.slept == []
    assert not outcome.is_ready


def test_workers_that_do_not_answer_are_asked_once_a_turn() -> None:
    world = World()
    world.workers.refusals["config"] = [WorkerUnreachable("no worker answers; look at the cluster's pods")]
    assert conditions(world.turn()) == [("NotReady", "ConnectException")]
    assert world.workers.calls == [("config",)]


def test_a_resource_that_makes_no_sense_touches_nothing() -> None:
    world = World(state="sleeping")
    assert conditions(world.turn()) == [("NotReady", "InvalidResourceException")]
    assert world.workers.calls == []


def test_a_paused_reconciliation_touches_nothing() -> None:
    world = World().settled()
    known = world.resource["status"]["connectorStatus"]
    world.annotations["strimzi.io/pause-reconciliation"] = "true"
    outcome = world.turn()
    assert conditions(outcome) == [("ReconciliationPaused", "")]
    assert outcome.status["connectorStatus"] == known
    assert world.workers.calls == []


def test_workers_without_a_count_of_topics_are_no_failure() -> None:
    world = World().settled()
    world.workers.refusals["topics"] = [IcestreamError("Topic tracking is disabled.")]
    outcome = world.turn()
    assert conditions(outcome) == [("Ready", "")]
    assert "topics" not in outcome.status


def test_traces_of_many_tasks_are_cut() -> None:
    world = World().settled()
    whole = world.workers.status_answer("sink")
    whole["tasks"] = [{"id": n, "state": "FAILED", "trace": "x" * 9_999} for n in range(100)]
    world.workers.status_answer = lambda name: whole  # type: ignore[method-assign]
    assert len(json.dumps(world.turn().status)) < 200_000


# Annotations


@pytest.mark.parametrize(
    ("annotation", "value", "call"),
    [
        (RESTART, "true", ("restart", False, False)),
        (RESTART, "includeTasks,onlyFailed", ("restart", True, True)),
        (RESTART_TASK, "0", ("restart_task", 0)),
    ],
)
def test_an_annotation_is_answered_once_and_removed(
    annotation: str, value: str, call: tuple[Any, ...]
) -> None:
    world = World().settled()
    world.annotations[annotation] = value
    world.turn()
    assert world.annotations == {}
    world.turn()
    assert world.workers.changes() == [call]


def test_an_annotation_that_failed_is_kept_told_and_tried_again() -> None:
    world = World().settled()
    world.annotations[RESTART] = "true"
    world.workers.refusals["restart"] = [IcestreamError("it broke; look at the log")]
    assert conditions(world.turn()) == [("Ready", ""), ("Warning", "RestartConnector")]
    assert world.annotations == {RESTART: "true"}
    assert conditions(world.turn()) == [("Ready", "")]
    assert world.annotations == {}


def test_an_annotation_without_meaning_is_kept_and_told() -> None:
    world = World().settled()
    world.annotations.update({RESTART: "true,onlyFailed", RESTART_TASK: "x", OFFSETS: "delete"})
    assert conditions(world.turn()) == [
        ("Ready", ""),
        ("Warning", "ConnectorOffsets"),
        ("Warning", "RestartConnector"),
        ("Warning", "RestartConnectorTask"),
    ]
    assert len(world.annotations) == 3
    assert world.workers.changes() == []


def test_a_restart_whose_annotation_could_not_be_removed_is_not_made_again() -> None:
    world = World().settled()
    world.annotations[RESTART] = "true"
    world.api.failing = {"remove_annotation"}
    assert ("Warning", "RestartConnector") in conditions(world.turn())
    world.turn()
    world.api.failing = set()
    world.turn()
    assert world.annotations == {}
    assert world.workers.changes() == [("restart", False, False)]
    world.annotations[RESTART] = "true"
    world.turn()
    assert len(world.workers.changes()) == 2


def test_a_restart_is_not_made_again_because_a_watch_is_late() -> None:
    world = World().settled()
    world.annotations[RESTART] = "true"
    late = copy.deepcopy(world.resource)
    world.turn()
    world.turn(late)
    assert len(world.workers.changes()) == 1


def test_a_restart_is_not_made_again_because_another_step_failed() -> None:
    world = World(listOffsets={"toConfigMap": {"name": "m"}}).settled()
    world.annotations.update({RESTART: "true", OFFSETS: "list"})
    world.api.failing = {"write_config_map_value", "write_status"}
    assert ("Warning", "ListOffsets") in conditions(world.turn())
    assert world.annotations == {OFFSETS: "list"}
    world.turn()
    assert world.workers.changes() == [("restart", False, False)]


def test_no_annotation_is_acted_upon_that_cannot_be_confirmed() -> None:
    world = World().settled()
    world.annotations[RESTART] = "true"
    world.api.failing = {"annotation"}
    world.turn()
    assert world.workers.changes() == []


# Offsets

ENTRIES = [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 7}}]


def test_offsets_are_listed_into_a_config_map_beside_its_other_keys() -> None:
    world = World(listOffsets={"toConfigMap": {"name": "m"}}).settled()
    world.workers.offset_entries = ENTRIES
    world.api.config_maps["m"] = {"other": "x"}
    world.annotations[OFFSETS] = "list"
    world.turn()
    assert world.annotations == {}
    assert json.loads(world.api.config_maps["m"]["offsets.json"]) == {"offsets": ENTRIES}
    assert world.api.config_maps["m"]["other"] == "x"


def test_offsets_are_altered_and_reset_only_while_the_connector_is_stopped() -> None:
    world = World(alterOffsets={"fromConfigMap": {"name": "m"}}).settled()
    world.api.config_maps["m"] = {"offsets.json": json.dumps({"offsets": ENTRIES})}
    for verb, reason in (("alter", "AlterOffsets"), ("reset", "ResetOffsets")):
        world.annotations[OFFSETS] = verb
        assert conditions(world.turn()) == [("Ready", ""), ("Warning", reason)]
        assert world.annotations == {OFFSETS: verb}
    world.resource["spec"]["state"] = "stopped"
    for verb in ("alter", "reset"):
        world.annotations[OFFSETS] = verb
        world.turn()
        assert world.annotations == {}
    assert world.workers.changes() == [("stop",), ("alter_offsets", ENTRIES), ("reset_offsets",)]


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"offsets": 3}', '{"offsets": [3]}', "[" * 9999])
def test_offsets_that_are_none_are_told(text: str | None) -> None:
    world = World(alterOffsets={"fromConfigMap": {"name": "m"}}, state="stopped").settled()
    world.annotations[OFFSETS] = "alter"
    if text is not None:
        world.api.config_maps["m"] = {"offsets.json": text}
    outcome = world.turn()
    assert conditions(outcome) == [("Ready", ""), ("Warning", "AlterOffsets")]
    assert "ConfigMap 'm'" in outcome.status["conditions"][1]["message"]
    assert world.workers.changes() == []


@pytest.mark.parametrize(("verb", "field"), [("list", "listOffsets"), ("alter", "alterOffsets")])
def test_offsets_without_a_config_map_are_told_with_its_field(verb: str, field: str) -> None:
    world = World(state="stopped").settled()
    world.annotations[OFFSETS] = verb
    assert field in world.turn().status["conditions"][1]["message"]


# Restarts by itself

AUTO = {"autoRestart": {"enabled": True}}


def restarts(world: World) -> int:
    return world.workers.changes().count(("restart", True, True))


@pytest.mark.parametrize("connector", [True, False])
def test_a_failed_connector_is_restarted_with_growing_pauses(connector: bool) -> None:
    world = World(**AUTO).settled()
    world.fail(connector=connector)
    made = []
    for minute in range(60):
        before = restarts(world)
        world.turn()
        if restarts(world) > before:
            made.append(minute)
        world.pass_minutes(1)
    assert made == [0, 2, 8, 20, 40]
    assert world.resource["status"]["autoRestart"]["count"] == 5


def test_a_restart_is_told_before_it_is_made() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.workers.refusals["restart"] = [IcestreamError("it broke")]
    world.turn()
    assert [one.get("autoRestart", {}).get("count") for one in world.api.statuses] == [None, 1, 1]


def test_a_status_that_cannot_be_written_lets_no_connector_be_restarted_at_every_turn() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.api.failing = {"write_status"}
    for _ in range(5):
        world.turn()
    assert restarts(world) == 0


def test_a_watch_that_is_late_lets_no_connector_be_restarted_twice() -> None:
    world = World(**AUTO).settled()
    world.fail()
    late = copy.deepcopy(world.resource)
    for _ in range(5):
        world.turn(late)
    assert restarts(world) == 1


def test_another_operator_goes_on_counting() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.turn()
    world.recent = type(world.recent)()
    world.turn()
    assert restarts(world) == 1
    world.pass_minutes(2)
    world.turn()
    assert world.resource["status"]["autoRestart"]["count"] == 2


def test_the_count_goes_after_a_quiet_time() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.turn()
    world.workers.tasks["sink"] = ["RUNNING"]
    world.turn()
    assert world.resource["status"]["autoRestart"]["count"] == 1
    world.pass_minutes(2)
    world.turn()
    assert "autoRestart" not in world.resource["status"]


def test_the_count_survives_workers_that_do_not_answer() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.turn()
    world.workers.refusals["config"] = [WorkerUnreachable("away")]
    assert world.turn().status["autoRestart"]["count"] == 1


def test_a_connector_that_was_restarted_by_hand_is_not_restarted_by_itself_in_the_same_turn() -> None:
    world = World(**AUTO).settled()
    world.fail()
    world.annotations[RESTART] = "includeTasks"
    world.turn()
    assert world.workers.changes() == [("restart", True, False)]


def test_no_more_restarts_than_allowed() -> None:
    world = World(autoRestart={"enabled": True, "maxRestarts": 1}).settled()
    world.fail()
    for _ in range(5):
        world.turn()
        world.pass_minutes(60)
    assert restarts(world) == 1


# All of a cluster


def test_one_connector_that_fails_keeps_no_other_from_its_turn() -> None:
    good, bad, broken = World(), World(state="odd"), World()
    workers = good.workers
    for name, world in (("good", good), ("bad", bad), ("broken", broken)):
        world.resource["metadata"]["name"] = name

    def objects_of(resource: Any) -> Any:
        if resource["metadata"]["name"] == "broken":
            raise RuntimeError("a mistake of ours")
        return good.api

    outcomes = reconcile_connectors(
        [broken.resource, bad.resource, good.resource], workers, objects_of, good.recent, Timing()
    )
    assert {name: one.is_ready for name, one in outcomes.items()} == {
        "broken": False,
        "bad": False,
        "good": True,
    }


def test_connectors_without_a_resource_are_deleted_one_by_one() -> None:
    workers = Workers()
    for name in ("a", "b", "c", "d"):
        workers.create(name, {})
    workers.refusals["delete"] = [NotReadyError("rebalance; try again")]
    surplus = delete_surplus(workers, lambda: {"c"})
    assert surplus.deleted == ("b", "d")
    assert surplus.failed == {"a": "rebalance; try again"}


def test_nothing_is_deleted_while_resources_cannot_be_listed() -> None:
    workers = Workers()
    workers.create("a", {})

    def away() -> set[str]:
        raise PreconditionError("the API server does not answer")

    with pytest.raises(PreconditionError):
        delete_surplus(workers, away)
    assert list(workers.configs) == ["a"]
