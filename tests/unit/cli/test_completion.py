"""Completion: the scripts, and what a shell gets when it asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from icestream.cli import main
from icestream.cli.main import icestream

Cli = Callable[..., Any]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    from click.shell_completion import ShellComplete

    def ask(url: str, *words: str) -> list[str]:
        monkeypatch.setenv("ICESTREAM_URL", url)
        shell = ShellComplete(icestream, {}, "icestream", "_ICESTREAM_COMPLETE")
        return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(bare_cli: Cli, shell: str) -> None:
    ran = bare_cli("completion", shell)
    assert ran.code == 0
    assert f"_ICESTREAM_COMPLETE={shell}_complete" in ran.out
    if program := shutil.which(shell):
        # The shell finds nothing wrong with it.
        subprocess.run([program, "-n"], input=ran.out, text=True, check=True, timeout=60)


def test_no_other_shell(bare_cli: Cli) -> None:
    assert bare_cli("completion", "cmd").code == 2


def test_commands_are_completed_without_importing_them() -> None:
    program = (
        "import sys, os; os.environ.update(_ICESTREAM_COMPLETE='bash_complete', COMP_WORDS='icestream s', "
        "COMP_CWORD='1')\n"
        "from icestream.cli.main import run\n"
        "try: run([])\n"
        "finally: print([name for name in sys.modules if name.startswith('icestream.cli.s')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    expected = [f"plain,{name}" for name in main.COMMANDS if name.startswith("s")]
    assert ran.stdout.splitlines() == [*expected, "[]"]


def test_names_come_from_the_worker(complete: Any, worker: Any) -> None:
    worker.create("iceberg-a", "iceberg-b", "delta")
    assert complete(worker.url, "connector", "pause", "ice") == ["iceberg-a", "iceberg-b"]
    assert complete(worker.url, "connector", "pause", "delta", "--wait", "") == [
        "iceberg-a",
        "iceberg-b",
        "delta",
    ]
    assert complete(worker.url, "connector", "offsets", "show", "d") == ["delta"]
    assert "org.apache.iceberg.connect.IcebergSinkConnector" in complete(
        worker.url, "plugins", "org.apache.i"
    )


def test_the_url_of_the_line_counts(complete: Any, worker: Any) -> None:
    worker.create("sink")
    assert complete("http://127.0.0.1:1", "connector", "pause", "--url", worker.url, "") == ["sink"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://x"])
def test_no_worker_is_no_names_and_no_noise(
    complete: Any, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert complete(url, "connector", "pause", "") == []
    assert complete(url, "connector", "pause", "--user", "me", "") == []
    assert capfd.readouterr() == ("", "")


def test_subcommands_and_options_are_completed(complete: Any) -> None:
    assert complete("", "connector", "re") == ["restart", "resume"]
    assert complete("", "connector", "create", "--st") == ["--state"]
    assert complete("", "connector", "create", "--state", "p") == ["paused"]
