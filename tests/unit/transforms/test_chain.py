"""A chain from a connector's config: classes by their names, settings parsed, errors on the whole keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.transforms.catalog import (
    ICEBERG,
    KAFKA,
    TABULAR,
    all_transforms,
    find_predicate,
    find_transform,
)
from icestream.transforms.chain import chain_from
from icestream.transforms.groups import Side
from icestream.transforms.user_functions import UserFunction


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
            {"transforms.a.type": "Filter", "transforms.a.plugin.version": "1.0"},
            {"transforms.a.plugin.version": "version range [1.0,1.0], available versions: [4.3.1]"},
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


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a function, as pip leaves it behind."""
    (tmp_path / "corner_shop.py").write_text("def same(table, settings):\n    return table\n")
    folder = tmp_path / "shop-2.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 2.1\n")
    (folder / "entry_points.txt").write_text("[icestream.transforms]\nsame = corner_shop:same\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_a_users_function_gets_the_keys_under_its_alias() -> None:
    chain = chain_from(
        {"transforms": "a", "transforms.a.type": "same", "transforms.a.any.key": " x", "transforms.ab.c": "y"}
    )
    (step,) = chain.steps
    assert isinstance(step.transform, UserFunction)
    assert (step.class_name, dict(step.transform.settings)) == ("same", {"any.key": " x"})


@pytest.mark.usefixtures("installed")
def test_a_users_function_is_listed_with_its_packages_version() -> None:
    assert [(one.class_name, one.version) for one in all_transforms() if one.class_name == "same"] == [
        ("same", "2.1")
    ]


@pytest.mark.parametrize("package", [ICEBERG, TABULAR])
def test_icebergs_transforms_have_two_homes(package: str) -> None:
    chain = chain_from({"transforms": "a", "transforms.a.type": f"{package}KafkaMetadataTransform"})
    assert chain.steps[0].class_name == f"{package}KafkaMetadataTransform"


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({"transforms.a.type": "Filter"}, (False, False)),
        ({"transforms.a.type": f"{KAFKA}Flatten$Key"}, (True, False)),
        ({"transforms.a.type": f"{ICEBERG}DebeziumTransform"}, (True, False)),
        ({"transforms.a.type": "DropHeaders", "transforms.a.headers": "h"}, (False, True)),
        (
            {
                "transforms.a.type": "Filter",
                "transforms.a.predicate": "p",
                "predicates": "p",
                "predicates.p.type": "HasHeaderKey",
                "predicates.p.name": "h",
            },
            (False, True),
        ),
    ],
)
def test_a_chain_says_what_it_needs(settings: dict[str, str], needs: tuple[bool, bool]) -> None:
    chain = chain_from({"transforms": "a", **settings})
    assert (chain.needs_keys, chain.needs_headers) == needs
