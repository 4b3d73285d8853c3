import pytest

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.errors import ConfigError

DEFINITION = ConfigDef(
    (
        Setting("name", Type.STRING, REQUIRED, "Its name."),
        Setting("tasks.max", Type.INT, 1, "How many.", at_least=1),
        Setting("errors.tolerance", Type.STRING, "none", "What to do.", choices=("none", "all")),
        Setting("secret", Type.PASSWORD, None, "Its password.", check=lambda value: "is too short"),
    ),
    prefixes=("iceberg.catalog.",),
)


def test_defaults_fill_in() -> None:
    assert DEFINITION.parse({"name": "a"}) == {
        "name": "a",
        "tasks.max": 1,
        "errors.tolerance": "none",
        "secret": None,
    }


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        DEFINITION.parse({"tasks.max": "0", "errors.tolerance": "some"})
    assert [problem.key for problem in caught.value.problems] == ["name", "tasks.max", "errors.tolerance"]


def test_a_secret_is_not_shown_in_its_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        DEFINITION.parse({"name": "a", "secret": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_typo_gets_a_suggestion_and_a_stranger_does_not() -> None:
    unknown = DEFINITION.unknown(["task.max", "iceberg.catalogs.uri", "my.own", "iceberg.catalog.uri"])
    assert unknown == {"task.max": "tasks.max", "iceberg.catalogs.uri": "iceberg.catalog.*", "my.own": None}
