"""The queue of the operator, without time: seconds are whatever the test says they are."""

from __future__ import annotations

import random

from icestream.operator.work_queue import WorkQueue, back_off


def _queue() -> WorkQueue[str]:
    """Keys `cluster` and `cluster/connector` share the lock of the cluster."""
    return WorkQueue(lock_of=lambda key: key.partition("/")[0])


def test_a_key_that_is_added_twice_is_given_out_once() -> None:
    queue = _queue()
    queue.add("a", 0.0)
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"
    assert queue.take(0.0) is None


def test_a_key_that_is_worked_on_comes_again_after_it_when_it_was_added_meanwhile() -> None:
    queue = _queue()
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"
    queue.add("a", 1.0)
    assert queue.take(1.0) is None
    queue.succeeded("a", 2.0)
    assert queue.take(2.0) == "a"


def test_a_cluster_and_its_connectors_are_never_worked_on_at_once_and_other_clusters_are() -> None:
    queue = _queue()
    for key in ("a", "a/c1", "b"):
        queue.add(key, 0.0)
    assert queue.take(0.0) == "a"
    assert queue.take(0.0) == "b"
    assert queue.take(0.0) is None
    queue.succeeded("a", 1.0)
    assert queue.take(1.0) == "a/c1"


def test_the_back_off_doubles_from_a_second_to_five_minutes() -> None:
    assert [back_off(failures) for failures in (1, 2, 3, 9, 10, 1000)] == [1, 2, 4, 256, 300, 300]


def test_a_key_that_fails_rests_longer_each_time_and_forgets_it_with_the_first_success() -> None:
    queue, now = _queue(), 0.0
    rests = []
    for _ in range(4):
        queue.add("a", now)
        assert queue.take(now) == "a"
        rests.append(queue.failed("a", now))
        assert queue.take(now + rests[-1] - 0.5) is None
        now += rests[-1]
    assert rests == [1, 2, 4, 8]
    assert queue.take(now) == "a"
    queue.succeeded("a", now)
    queue.add("a", now)
    assert queue.take(now) == "a"
    assert queue.failed("a", now) == 1


def test_a_resync_does_not_wake_a_key_that_rests_after_a_failure_and_a_change_does() -> None:
    queue = _queue()
    queue.add("a", 0.0)
    for _ in range(9):
        assert queue.take(1e6) == "a"
        queue.failed("a", 0.0)
    queue.add("a", 10.0, urgent=False)
    assert queue.take(10.0) is None
    queue.add("a", 10.0)
    assert queue.take(10.0) == "a"


def test_a_failing_key_that_its_own_writes_wake_still_rests() -> None:
    queue = _queue()
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"
    queue.add("a", 0.1)
    queue.failed("a", 0.2)
    assert queue.take(0.3) is None
    assert queue.take(1.3) == "a"


def test_a_turn_may_ask_for_another_one_later_and_an_earlier_wish_comes_first() -> None:
    queue = _queue()
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"
    queue.succeeded("a", 0.0, again_after=60.0)
    assert queue.next_due(0.0) == 60.0
    queue.add("a", 5.0, after=1.0)
    assert queue.take(5.9) is None
    assert queue.take(6.0) == "a"


def test_a_key_that_moves_to_another_lock_while_it_runs_frees_the_one_it_held() -> None:
    owner = {"c": "a", "a": "a", "b": "b"}
    queue: WorkQueue[str] = WorkQueue(lock_of=lambda key: owner[key])
    queue.add("c", 0.0)
    assert queue.take(0.0) == "c"
    owner["c"] = "b"
    queue.add("a", 0.0)
    assert queue.take(0.0) is None
    queue.succeeded("c", 0.0)
    assert queue.take(0.0) == "a"


def test_whatever_happens_no_lock_is_held_twice_and_no_change_is_forgotten() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, queue, now = random.Random(seed), _queue(), 0.0
    keys = ["a", "a/1", "a/2", "b", "b/1", "c"]
    unseen: set[str] = set()
    running: set[str] = set()
    for _ in range(3000):
        now += chance.random()
        step = chance.randrange(4)
        if step == 0:
            key = chance.choice(keys)
            queue.add(key, now)
            unseen.add(key)
        elif step == 1 and (taken := queue.take(now)) is not None:
            assert taken.partition("/")[0] not in {key.partition("/")[0] for key in running}
            running.add(taken)
            unseen.discard(taken)
        elif running:
            key = chance.choice(sorted(running))
            running.discard(key)
            if step == 2:
                queue.succeeded(key, now)
            else:
                queue.failed(key, now)
    for key in running:
        queue.succeeded(key, now)
    seen = set()
    while (taken := queue.take(now + 1e4)) is not None:
        seen.add(taken)
        queue.succeeded(taken, now)
    assert unseen <= seen


def test_keys_of_one_namespace_never_take_all_threads() -> None:
    queue: WorkQueue[str] = WorkQueue(
        lock_of=lambda key: key, group_of=lambda key: key.partition("/")[0], most_of_group=2
    )
    for key in ("hangs/1", "hangs/2", "hangs/3", "other/1"):
        queue.add(key, 0.0)
    assert [queue.take(0.0) for _ in range(4)] == ["hangs/1", "hangs/2", "other/1", None]
    # Nothing can be taken: the dispatcher must sleep, not spin.
    assert queue.next_due(0.0) is None
    queue.succeeded("hangs/1", 1.0)
    assert queue.next_due(1.0) == 0.0
    assert queue.take(1.0) == "hangs/3"
