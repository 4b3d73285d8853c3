"""A chain from a connector's config: classes by their names, settings parsed, errors on the whole keys."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.transforms.build import chain_from
from icestream.transforms.catalog import KAFKA, find_predicate, find_transform
from icestream.transforms.side import Side


def test_no_transforms_are_an_empty_chain() -> None:
    chain = chain_from({"name": "c"})
    assert (list(chain.steps), chain.needs_keys, chain.needs_headers) == ([], False, False)


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        (f"{KAFKA}Cast$Key", f"{KAFKA}Cast$Key"),
        (f"{KAFKA}Cast$Value", f"{KAFKA}Cast$Value"),
        ("RegexRouter", f"{KAFKA}RegexRouter"),
        (f"{KAFKA}Cast", None),
        ("Cast$Value", None),
        (f"{KAFKA}Cast$Both", None),
        ("", None),
    ],
)
def test_a_class_has_the_names_that_kafka_connect_takes(name: str, class_name: str | None) -> None:
    found = find_transform(name)
    assert (found.class_name if found else None) == class_name


def test_a_side_is_part_of_the_class() -> None:
    found = find_transform(f"{KAFKA}Flatten$Key")
    assert found is not None and found.side is Side.KEY


def test_a_predicate_has_a_short_name() -> None:
    found = find_predicate("TopicNameMatches")
    assert found is not None and found.class_name == f"{KAFKA}predicates.TopicNameMatches"


@pytest.mark.parametrize(
    ("settings", "problems"),
    [
        ({}, {"transforms.a.type": 'Missing required configuration "transforms.a.type"'}),
        ({"transforms.a.type": "Nope"}, {"transforms.a.type": "Class Nope could not be found."}),
        (
            {"transforms.a.type": f"{KAFKA}Cast"},
            {"transforms.a.type": f"{KAFKA}Cast$Key, {KAFKA}Cast$Value?"},
        ),
        (
            {"transforms.a.type": f"{KAFKA}predicates.HasHeaderKey"},
            {"transforms.a.type": "does not implement the Transformation interface"},
        ),
        (
            {"transforms.a.type": "Filter", "transforms.a.negate": "true"},
            {"transforms.a.type": "there is no config 'transforms.a.predicate' defining a predicate"},
        ),
        (
            {"transforms.a.type": "Filter", "transforms.a.predicate": "p"},
            {"transforms.a.predicate": "'transforms.a.predicate=p' names no predicate; add p"},
        ),
        (
            {"transforms.a.type": f"{KAFKA}Flatten$Value", "transforms.a.negate": "x"},
            {"transforms.a.negate": "Invalid value x for configuration transforms.a.negate: Expected value"},
        ),
        (
            {"transforms.a.type": f"{KAFKA}HeaderFrom$Value", "transforms.a.operation": "cut"},
            {"transforms.a.operation": "Invalid value cut for configuration operation: String must be one"},
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_whole_key(settings: dict[str, str], problems: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain_from({"transforms": "a", **settings})
    told = {problem.key: problem.message for problem in caught.value.problems}
    for key, words in problems.items():
        assert words in told[key]
