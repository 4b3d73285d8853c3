"""The crash table of DESIGN.md, rows 1 to 5 and 9: a process is really killed at that point, and the next one goes on."""

from __future__ import annotations

import os
import signal

import pytest
from pyspark.sql import SparkSession

from tests.crashes.conftest import MakePipeline, StartManager
from tests.crashes.harness import Fault, Halt, Pipeline


def data_files(pipeline: Pipeline) -> int:
    return len(list((pipeline.folder / "warehouse").rglob("*.parquet")))


# -- row 1: while staging ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["reading", "written"])
def test_a_manager_killed_while_its_batch_is_staged_leaves_no_row(
    where: str, pipeline: Pipeline, start_manager: StartManager, spark: SparkSession
) -> None:
    pipeline.produce(range(50_000), spoil=range(5))
    halt = Halt(where, pipeline.folder)
    first = start_manager(pipeline, halt=halt)
    first.wait_halted(halt)
    first.kill()
    assert "staged" not in first.lines()
    assert pipeline.table().current_snapshot() is None
    pipeline.drain(spark)
    pipeline.check()


# -- row 2: after staging, before any table commit ---------------------------------------------------------------


def test_a_manager_killed_after_staging_leaves_files_that_nobody_references(
    pipeline: Pipeline, start_manager: StartManager, spark: SparkSession
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault("staged", "kill")).killed_itself()
    orphans = data_files(pipeline)
    assert orphans > 0
    assert pipeline.table().current_snapshot() is None
    pipeline.drain(spark)
    pipeline.check()
    assert data_files(pipeline) == orphans + len(pipeline.table().inspect.files())
