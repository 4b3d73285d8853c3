"""The docs build as a site without a warning, and load nothing from other people's servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    warnings = [line for line in built.stderr.splitlines() if not line.startswith("INFO")]
    assert built.returncode == 0, "the site does not build:\n" + "\n".join(warnings)
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        built = name.with_name("index.html") if page.name == "README.md" else name
        assert (site / built).is_file(), page
    for name in (
        "readme",
        "changelog",
        "contributing",
        "security",
        "examples",
        "examples-jdbc",
        "examples-s3",
    ):
        assert (site / "project" / f"{name}.html").is_file()
    assert (site / "search" / "search_index.json").is_file()


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    assert [found for page in site.rglob("*.html") for found in loaded.findall(page.read_text())] == []


def test_pages_stand_in_the_order_of_the_list_of_all_pages(site: Path) -> None:
    index = (site / "index.html").read_text()
    order = ["connectors/iceberg.html", "operations.html", "exactly-once.html"]
    places = [index.index(f'href="{page}" class="md-nav__link"') for page in order]
    assert places == sorted(places)
