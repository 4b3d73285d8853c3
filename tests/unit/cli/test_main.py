"""The entry of the command line: what it imports, what it prints, which exit code it gives."""

import os
import subprocess
import sys
from typing import Any

import click
import pytest

from icestream.api.errors import ConfigError, PreconditionError, Problem, WorkerUnreachable
from icestream.cli import main


def failing(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> object:
    def install(error: BaseException) -> None:
        monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: failing(error))

    return install


HEAVY = (
    "pyspark",
    "pyarrow",
    "pyiceberg",
    "confluent_kafka",
    "kafka",
    "starlette",
    "uvicorn",
    "httpx",
    "rich",
    "numpy",
    "pandas",
    "asyncio",
)


def run_and_list_heavy(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own; the last line printed is the heavy modules it imported."""
    program = (
        f"import sys; from icestream.cli.main import run; run({list(arguments)!r});"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240, **options
    )


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    ran = run_and_list_heavy("--help")
    assert all(f"  {name} " in ran.stdout for name in main.COMMANDS)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["connectors", "--help"],
        ["connectors"],
        ["connector", "create", "-f", "-"],
        ["connector", "config", "sink", "--set", "a=b"],
        ["connector", "offsets", "show", "sink"],
        ["plugins"],
        ["loggers"],
        ["completion", "zsh"],
    ],
)
def test_commands_that_talk_to_a_worker_import_nothing_heavy(arguments: list[str], canned: Any) -> None:
    canned.say("GET", "/connectors?expand=status&expand=progress", 200, {})
    ran = run_and_list_heavy(*arguments, input="name=sink", env={**os.environ, "ICESTREAM_URL": canned.url})
    assert ran.stdout.splitlines()[-1] == "[]"
    assert bool(canned.requests) == (arguments[0] != "completion" and "--help" not in arguments)


def test_exit_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["--help"])
    assert "3    no worker answers" in capsys.readouterr().out
    main.run(["connector", "--help"])
    assert "3  no worker answers" in capsys.readouterr().out


def test_the_help_of_every_command_has_its_own_example(capsys: pytest.CaptureFixture[str]) -> None:
    from icestream.cli.connector import connector

    def check(group: click.Group, path: list[str]) -> None:
        for name, command in group.commands.items():
            assert main.run([*path, name, "--help"]) == 0
            assert f"icestream {' '.join([*path, name])} " in capsys.readouterr().out.partition("Example:")[2]
            if isinstance(command, click.Group):
                check(command, [*path, name])

    check(connector, ["connector"])


def test_no_worker_is_exit_code_3(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    command(WorkerUnreachable("nobody there"))
    assert main.run(["kafka"]) == 3
    assert capsys.readouterr().err == "icestream: nobody there\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("icestream 0.")


@pytest.mark.parametrize("name", ["kafka", "load"])
def test_every_command_of_ours_has_help_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([name, "--help"]) == 0
    assert f"Example:\n    icestream {name} " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["start", "stop", "status"])
def test_the_broker_commands_have_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["kafka", name, "--help"]) == 0
    assert f"Example:\n    icestream kafka {name}" in capsys.readouterr().out


def test_a_wrong_call_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["load"]) == 2
    assert capsys.readouterr().err == "icestream: Missing option '--topic'; see `icestream load --help`\n"
    assert main.run(["no-such-command"]) == 2
    assert "No such command 'no-such-command'" in capsys.readouterr().err


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_our_errors_are_one_sentence_without_a_trace(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    command(PreconditionError("port 9092 is taken"))
    assert main.run(["kafka"]) == 1
    assert capsys.readouterr().err == "icestream: port 9092 is taken\n"


def test_every_problem_of_a_config_has_its_line(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    command(ConfigError([Problem("a", "a is wrong"), Problem("b", "b is wrong")]))
    assert main.run(["kafka"]) == 1
    assert capsys.readouterr().err == "icestream: a is wrong\nicestream: b is wrong\n"


def test_ctrl_c_is_exit_code_130_and_silent(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    command(KeyboardInterrupt())
    assert main.run(["kafka"]) == 130
    assert capsys.readouterr().err.strip() == ""
