"""A folder for Delta tables."""

from pathlib import Path

import pytest

from tests.unit.connectors.delta.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")
