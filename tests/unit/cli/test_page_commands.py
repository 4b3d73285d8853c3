"""Blocks of commands of several pages, run as they stand, against a worker whose jobs only pretend."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.api.offset_admin import OffsetEntry
from tests.docs_commands import ROOT, commands_run_by
from tests.unit.connectors.iceberg.maintained import Job, catalog_config, new_catalog

Cli = Callable[..., Any]


def run_all(cli: Cli, page: str, instead: dict[str, str] | None = None) -> list[str]:
    """What each command of the page's blocks for this file prints."""
    printed = []
    for command in commands_run_by(page, __file__):
        for words, others in (instead or {}).items():
            command = command.replace(words, others)
        program, *arguments = shlex.split(command)
        assert program == "icestream"
        ran = cli(*arguments)
        assert ran.code == 0, (command, ran.out, ran.err)
        printed.append(ran.out)
    return printed


def test_offsets_by_hand_and_loggers_of_the_page_on_operations(cli: Cli, worker: Any) -> None:
    worker.create("NAME")
    worker.offsets.entries = [
        OffsetEntry({"kafka_topic": "apilogs", "kafka_partition": 0}, {"kafka_offset": 60_000})
    ]
    printed = run_all(cli, "docs/operations.md")
    assert printed[0] == "connector NAME stopped\n"
    assert "60000" in printed[1]
    assert printed[2:4] == [
        "The offsets for this connector have been altered successfully\n",
        "connector NAME resumed\n",
    ]
    assert worker.offsets.entries[0].offset == {"kafka_offset": 50_000}
    assert len(printed) == 5


def test_a_topics_file_is_shown_and_applied(
    cli: Cli, worker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Nothing is there: an attempt to reach it ends at once.
    monkeypatch.setenv("S3_ENDPOINT_URL", "http://127.0.0.1:9")
    page = (ROOT / "docs" / "topics-file.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    Path("application.yml").write_text(shown)
    Path("schemas").mkdir()
    Path("schemas/user-events-schema.json").write_text('{"type": "object"}')
    printed = run_all(cli, "docs/topics-file.md")
    assert [one["name"] for one in json.loads(printed[0])] == ["user-events"]
    assert "connector user-events created (dry run)" in printed[1]
    assert printed[2] == "connector user-events created\n"


def test_a_table_is_maintained_by_hand(cli: Cli, worker: Any, tmp_path: Path) -> None:
    job = Job(new_catalog(tmp_path), "sink")
    for _ in range(3):
        job.commit()
    worker.create("sink", **catalog_config(tmp_path))
    printed = run_all(cli, "docs/maintenance.md", {"streaming.apilogs": "ns.t"})
    assert [text.partition(":")[0] for text in printed[:4]] == [
        "compaction",
        "compaction",
        "expiry",
        "orphans",
    ]
    assert "3 data files are now 1" in printed[1]
    assert "maintenance: compaction" in printed[4]
