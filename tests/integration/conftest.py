"""What several integration tests share."""

from pathlib import Path

import pytest

from icestream.embedded.home import home


@pytest.fixture
def demo_home(tmp_path: Path) -> Path:
    """A home of its own for a demo, with the jars that are downloaded already."""
    own = tmp_path / "home"
    own.mkdir()
    for cache in ("jars", "ivy"):
        (home() / cache).mkdir(exist_ok=True)
        (own / cache).symlink_to(home() / cache)
    return own
