"""Programs that tests need: who lacks one learns the package, and CI installs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import programs

CI = Path(__file__).parents[3] / ".ci" / "run"


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    for ask in (lambda: programs.require_program("promtool"), lambda: programs.require_programs("promtool")):
        with pytest.raises(pytest.skip.Exception, match="missing promtool: apt-get install prometheus"):
            ask()
    mark = programs.needs_program("mariadbd", "jq").mark
    packages = "jq mariadb-client-core mariadb-server-core"
    assert mark.args == (True,)
    assert mark.kwargs == {"reason": f"missing mariadbd, jq: apt-get install {packages}"}


def test_a_program_may_have_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATH", str(tmp_path))
    (tmp_path / "google-chrome").write_text("#!/bin/sh")
    (tmp_path / "google-chrome").chmod(0o755)
    assert programs.require_program("chromium") == str(tmp_path / "google-chrome")
    assert programs.needs_program("chromium").mark.args == (False,)


def test_ci_installs_every_package() -> None:
    of_the_system = {"util-linux", "default-jre-headless"}
    packages = {one for text in programs.PACKAGES.values() for one in text.split()} - of_the_system
    text = CI.read_text()
    assert [one for one in sorted(packages) if f"{one})" not in text and f"{one} " not in text] == []
