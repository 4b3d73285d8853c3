"""The command `icestream`: finds the subcommand, imports only that one, turns errors into one sentence."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import click

from icestream import __version__
from icestream.api.errors import ConfigError, IcestreamError

INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Entry:
    """Where a subcommand lives, and its line in the list of commands, which must not need an import."""

    target: str
    help: str


COMMANDS: Final[Mapping[str, Entry]] = {
    "demo": Entry(
        "icestream.cli.demo:demo", "MinIO logs through Kafka into Iceberg on this machine, then the proof."
    ),
    "standalone": Entry(
        "icestream.cli.standalone:standalone", "A worker with the REST API, and its connectors."
    ),
    "connectors": Entry("icestream.cli.connectors:connectors", "The live table of a worker's connectors."),
    "verify": Entry(
        "icestream.cli.verify:verify", "Prove that no record is missing and none is there twice."
    ),
    "sql": Entry("icestream.cli.sql:sql", "Spark SQL over the tables."),
    "kafka": Entry("icestream.cli.kafka:kafka", "Start and stop the embedded Kafka broker."),
    "load": Entry("icestream.cli.load:load", "Fill a topic with realistic MinIO logs."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, so that `--help` starts in a blink."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\nExample:\n  icestream demo --records 50000\n  icestream COMMAND --help",
)
@click.version_option(__version__, prog_name="icestream", message="%(prog)s %(version)s")
def icestream() -> None:
    """Kafka Connect, with Spark inside: topics into Iceberg tables, exactly once."""


def main() -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 it was called wrongly, 130 Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    try:
        outcome = icestream.main(arguments, prog_name="icestream", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"icestream: {error.format_message().rstrip('.')}{_hint(error)}", err=True)
        return error.exit_code
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"icestream: {problem}", err=True)
        return 1
    except IcestreamError as error:
        click.echo(f"icestream: {error}", err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        click.echo(f"icestream: {error}; check the path, its permissions and the disk", err=True)
        return 1
    return outcome if isinstance(outcome, int) else 0


def _hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"; see `{context.command_path} --help`" if context else ""


if __name__ == "__main__":
    main()
