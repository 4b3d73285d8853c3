"""Who runs what: every rebalance of a few thousand random groups."""

from __future__ import annotations

import random

from icestream.cluster.group.membership import assign


def settled(connectors: list[str], owned: dict[str, list[str]]) -> tuple[dict[str, frozenset[str]], int]:
    """Rebalance until nothing moves; how many rebalances that took."""
    for count in range(1, 5):
        shares = assign(connectors, owned)
        names = [name for share in shares.values() for name in share]
        assert len(names) == len(set(names)), "a connector has two owners"
        for member, share in shares.items():
            for name in share - set(owned[member]):
                running = [other for other, names in owned.items() if name in names]
                assert not running, "a connector moves before its job has ended"
        if all(share == frozenset(owned[member]) for member, share in shares.items()):
            return shares, count
        owned = {member: sorted(share) for member, share in shares.items()}
    raise AssertionError("it never settles")


def test_everything_runs_once_and_the_load_is_even() -> None:
    for seed in range(3000):
        chance = random.Random(seed)
        connectors = [f"c{i}" for i in range(chance.randint(0, 14))]
        owned: dict[str, list[str]] = {f"m{i}": [] for i in range(chance.randint(1, 5))}
        for name in [*connectors, "deleted"]:
            if chance.random() < 0.7:
                owned[chance.choice(sorted(owned))].append(name)
        shares, _ = settled(connectors, owned)
        assert set().union(*shares.values()) == set(connectors)
        sizes = [len(share) for share in shares.values()]
        assert max(sizes) - min(sizes) <= 1


def test_what_need_not_move_stays() -> None:
    shares = assign(["a", "b", "c", "d"], {"one": ["a", "b"], "two": ["c"], "three": []})
    assert shares["one"] >= {"a"} and shares["two"] == {"c"} and shares["three"] == {"d"}
    lost = assign(["a", "b", "c", "d"], {"one": ["a"], "two": ["c"]})
    assert lost == {"one": {"a", "b"}, "two": {"c", "d"}}


def test_a_connector_with_two_owners_keeps_one() -> None:
    shares = assign(["a", "b"], {"one": ["a", "b"], "two": ["a", "b"]})
    assert [sorted(share) for share in shares.values()] in ([["a"], []], [["b"], []])
