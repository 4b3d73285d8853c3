"""Which keys of connectors tests set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.delta.settings import DELTA_SINK
from icestream.connectors.jdbc.sink.keys import CONFLUENT
from tests.kit import config_keys
from tests.kit.config_keys import KeysSet, declared

DELTA = "io.icestream.connect.delta.DeltaSinkConnector"


@pytest.fixture
def keys() -> Iterator[KeysSet]:
    """What the tests of this file set, which does not count for the run."""
    own = KeysSet()
    with config_keys.recorded(own):
        yield own


def test_keys_that_a_config_sets_count_and_defaults_do_not(keys: KeysSet) -> None:
    DELTA_SINK.parse({"delta.tables": "a.b", "delta.table.a.b.partition-by": "day", "x": "y"})
    assert keys.by_class[DELTA] == {"delta.tables", "delta.table.<table>.partition-by"}


def test_a_key_that_begins_others_counts_with_one_of_them(keys: KeysSet) -> None:
    DELTA_SINK.parse({"delta.tables": "a.b", "delta.tables.write-props.compression": "zstd"})
    assert "delta.tables.write-props." in keys.by_class[DELTA]


def test_a_value_that_is_refused_does_not_count(keys: KeysSet) -> None:
    with pytest.raises(ConfigError):
        DELTA_SINK.parse({"delta.tables": "a.b", "delta.control.commit.threads": "many"})
    assert keys.by_class == {}


def test_a_setting_that_classes_share_counts_for_each(keys: KeysSet) -> None:
    CONFLUENT.parse({"connection.url": "jdbc:postgresql://h/d", "pk.mode": "none"})
    assert [one.name.split(".")[1] for one in declared() if "pk.mode" in keys.by_class.get(one.name, ())] == [
        "confluent",
        "aiven",
    ]


def test_keys_without_effect_need_no_test() -> None:
    every = {key for one in declared() for key in one.keys}
    assert "delta.tables" in every and "poll.linger.ms" not in every


def test_what_processes_recorded_is_one(keys: KeysSet) -> None:
    (delta,) = [one for one in declared() if one.name == DELTA]
    keys.merge({DELTA: sorted(delta.keys - {"delta.tables", "delta.location"})})
    assert f"{DELTA}: delta.location, delta.tables" in keys.missing()
    DELTA_SINK.parse({"delta.tables": "a.b"})
    assert f"{DELTA}: delta.location" in keys.missing()
