"""Rotation in columns against the rules read literally, over random records, in chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from icestream.connectors.s3.rotation import Rotation, RotationRules, RowFacts
from tests.unit.connectors.s3.rotation_model import Model, Row

ROWS = st.lists(
    st.builds(
        Row,
        folder=st.integers(0, 3),
        schema=st.sampled_from([0, 0, 0, 0, 1, 2]),
        fits=st.sampled_from([True, True, True, False]),
        time=st.integers(0, 50),
    ),
    max_size=300,
)
RULES = st.builds(
    RotationRules,
    flush_size=st.integers(1, 40),
    interval_ms=st.sampled_from([-1, 0, 5, 20, 1000]),
    on_folder_change=st.booleans(),
)
CHANGES = [lambda began, schema: True, lambda began, schema: schema > began, lambda began, schema: False]


def facts(rows: list[Row], by_time: bool) -> RowFacts:
    return RowFacts(
        np.array([row.folder for row in rows], np.int64),
        np.array([row.schema for row in rows], np.int64),
        np.array([row.fits for row in rows], np.bool_),
        np.array([row.time for row in rows], np.int64) if by_time else None,
    )


@given(ROWS, RULES, st.sampled_from(CHANGES), st.booleans(), st.lists(st.integers(0, 300), max_size=4))
@settings(max_examples=150, deadline=None)
def test_rounds_are_those_of_the_rules_read_literally(rows, rules, changes, by_time, cuts) -> None:
    model = Model(rules, changes)
    wanted = model.put_all([row if by_time else Row(row.folder, row.schema, row.fits) for row in rows])
    rotation = Rotation(rules, changes)
    found: list[int] = []
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for low, high in pairwise(bounds):
        found += rotation.rounds(facts(rows[low:high], by_time)).tolist()
    assert (found, rotation.round) == (wanted, model.round)


def test_flush_size_counts_the_records_of_all_folders_together() -> None:
    """`flush.size`."""
    rows = [Row(folder=0), Row(folder=1), Row(folder=0), Row(folder=1), Row(folder=0)]
    assert Rotation(RotationRules(2), CHANGES[0]).rounds(facts(rows, False)).tolist() == [0, 0, 1, 1, 2]


def test_a_late_record_closes_all_before_it_is_written() -> None:
    """`rotate.interval.ms`, by the first record after the last close."""
    rows = [Row(0, time=time) for time in (100, 50, 199, 200, 250, 299, 300)]
    rules = RotationRules(100, interval_ms=100)
    assert Rotation(rules, CHANGES[0]).rounds(facts(rows, True)).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_another_folder_closes_all_unless_told_not_to() -> None:
    """`rotate.file.on.partition.change`."""
    rows = [Row(folder, time=1) for folder in (0, 0, 1, 1, 0)]
    closing, keeping = (RotationRules(100, 1000, on_folder_change=on) for on in (True, False))
    assert Rotation(closing, CHANGES[0]).rounds(facts(rows, True)).tolist() == [0, 0, 1, 1, 2]
    assert Rotation(keeping, CHANGES[0]).rounds(facts(rows, True)).tolist() == [0, 0, 0, 0, 0]
