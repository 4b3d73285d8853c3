"""`scripts/check-release`: one version in the package, in its metadata, in the tag and in the changelog."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.docs_commands import ROOT

CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "check-release"))


def project(folder: Path, version: str = "1.2.0", changelog: str = "## [Unreleased]\n") -> Path:
    (folder / "icestream").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "icestream"\nversion = "1.2.0"\n')
    (folder / "icestream" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    return folder


def test_this_repository_may_be_built() -> None:
    assert CHECK["problems"](ROOT, CHECK["tags_here"](ROOT)) == []


@pytest.mark.parametrize(
    ("version", "changelog", "tags", "said"),
    [
        ("1.2.0", "## [Unreleased]\n", [], None),
        ("1.2.0", "## [1.2.0] - 2026-11-18\n", ["v1.2.0"], None),
        ("1.2.0", "## [Unreleased]\n", ["v1.2.0"], "no section '## [1.2.0]' for the tag v1.2.0"),
        ("1.2.0", "## [1.2.0]\n", ["v1.3.0"], "the tag is v1.3.0, pyproject.toml says 1.2.0"),
        ("1.1.0", "## [Unreleased]\n", [], "says version 1.1.0, pyproject.toml says 1.2.0"),
        ("1.2.0", "## [1.1.0]\n", [], "neither '## [Unreleased]' nor '## [1.2.0]'"),
    ],
)
def test_what_does_not_agree_is_named(
    version: str, changelog: str, tags: list[str], said: str | None, tmp_path: Path
) -> None:
    found = CHECK["problems"](project(tmp_path, version, changelog), tags)
    assert (said is None and not found) or (said is not None and said in found[0])


def test_an_unpacked_sdist_has_no_tags(tmp_path: Path) -> None:
    assert CHECK["tags_here"](project(tmp_path)) == []
