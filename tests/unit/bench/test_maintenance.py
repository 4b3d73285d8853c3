"""The goal of maintenance, measured as the benchmark does: few files, little metadata, fast batches."""

from __future__ import annotations

import pytest

from bench.maintenance import keep, shown
from tests.long_form import sized


@pytest.mark.parametrize("batches", sized(45, 500))
def test_a_table_stays_small_and_every_record_is_proved(batches: int) -> None:
    kept = keep("no partitions", batches)
    assert kept.is_proved
    assert kept.data_files <= 50
    assert kept.metadata_bytes < 2_000_000
    assert "no partitions, yes" in shown([kept])


@pytest.mark.long
def test_the_last_of_500_batches_takes_at_most_1_3_times_as_long_as_the_first() -> None:
    """Medians of batches that take turns; a machine that is busy otherwise has two more chances."""
    ratios = []
    for _ in range(3):
        ratios.append(keep("no partitions", 500).ratio)
        if ratios[-1] <= 1.3:
            return
    raise AssertionError(ratios)
