"""Upserts: the table is what a dict of the same changes is, whatever dies in between."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.upserts import Change, UpsertPipeline, random_changes, upsert_pipeline

_NUMBERS = itertools.count(1)
MakeUpserts = Callable[..., UpsertPipeline]


@pytest.fixture
def make_upserts(broker: Broker, tmp_path: Path) -> MakeUpserts:
    def make(**options: str) -> UpsertPipeline:
        return upsert_pipeline(broker.bootstrap, tmp_path, f"upsert-{next(_NUMBERS)}", **options)

    return make


def test_changes_tombstones_and_moves_to_other_partitions(
    make_upserts: MakeUpserts, spark: SparkPlane
) -> None:
    pipeline = make_upserts()
    pipeline.change(
        [Change(1, "c", "a", 1), Change(2, "r", "a", 2), Change(3, "I", "b", 3), Change(1, "u", "a", 11)]
    )
    pipeline.drain(spark)
    pipeline.check()
    pipeline.change(
        [Change(2, "U", "b", 22), Change(3, "d"), Change(3, None), Change(4, "d"), Change(5, None)]
    )
    pipeline.drain(spark)
    pipeline.check()
    pipeline.change(random_changes(random.Random(1), 50, 500))
    pipeline.drain(spark)
    pipeline.check()
