"""The command `icestream`: finds the subcommand, imports only that one, turns errors into one sentence."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from icestream import __version__
from icestream.api.errors import IcestreamError, WorkerUnreachable
from icestream.cli.lines import complain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

UNREACHABLE: Final = 3
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
    "distributed": Entry(
        "icestream.cli.distributed:distributed", "A worker of a cluster, with the REST API."
    ),
    "job-manager": Entry(
        "icestream.cli.job_manager:job_manager", "One job on its own: commits for workers of Kafka Connect."
    ),
    "connectors": Entry("icestream.cli.connectors:connectors", "List connectors, live with --watch."),
    "connector": Entry("icestream.cli.connector:connector", "Create, change, steer and examine connectors."),
    "topics-file": Entry("icestream.cli.topics_file:topics_file", "Connectors from a list of topics."),
    "plugins": Entry("icestream.cli.plugins:plugins", "What a worker can run, and its config keys."),
    "loggers": Entry("icestream.cli.loggers:loggers", "Show and set log levels."),
    "verify": Entry(
        "icestream.cli.verify:verify", "Prove that no record is missing and none is there twice."
    ),
    "doctor": Entry(
        "icestream.cli.doctor.command:doctor", "What keeps a worker or a connector from work, and what to do."
    ),
    "dlq": Entry("icestream.cli.dlq:dlq", "Show dead letters, and send them again after a fix."),
    "table": Entry("icestream.cli.table:table", "Compact, expire and clean a table, and show its history."),
    "sql": Entry("icestream.cli.sql:sql", "Spark SQL over the tables."),
    "stack": Entry(
        "icestream.cli.stack:stack",
        "MinIO, Kafka, a worker and Trino on this machine, with or without Docker.",
    ),
    "kafka": Entry("icestream.cli.kafka:kafka", "Start and stop the embedded Kafka broker."),
    "operator": Entry("icestream.cli.operator:operator", "Clusters and connectors on Kubernetes."),
    "image": Entry("icestream.cli.image:image", "Push archives of container images to a registry."),
    "load": Entry("icestream.cli.load:load", "Fill a topic with realistic MinIO logs."),
    "completion": Entry("icestream.cli.main:completion", "Completion for bash, zsh or fish."),
}


@click.command(
    epilog="\b\nExample:\n"
    '  eval "$(icestream completion bash)"     # in ~/.bashrc\n'
    '  eval "$(icestream completion zsh)"      # in ~/.zshrc\n'
    "  icestream completion fish > ~/.config/fish/completions/icestream.fish",
    short_help="Completion for bash, zsh or fish.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It asks the worker at $ICESTREAM_URL for the names of connectors.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "icestream", "_ICESTREAM_COMPLETE")
    # Not `script.source()`: for bash that runs a bash, to complain about old ones.
    click.echo(ShellComplete.source(script))


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\nExample:\n  icestream demo --records 50000\n"
    "  icestream connector create -f sink.json --wait\n"
    "  icestream COMMAND --help\n\n"
    "\b\nExit codes:\n  0    done\n  1    it failed, or the worker said no\n  2    called wrongly\n"
    "  3    no worker answers\n  130  Ctrl-C",
)
@click.version_option(__version__, prog_name="icestream", message="%(prog)s %(version)s")
@click.pass_context
def icestream(ctx: click.Context) -> None:
    """Kafka Connect, with Spark inside: topics into tables, buckets and databases, exactly once."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main() -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 it was called wrongly, 3 no worker answers,
    130 Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str], obj: object = None) -> int:
    """The exit code; `obj` is click's, for tests that bring their own clock."""
    try:
        outcome = icestream.main(arguments, prog_name="icestream", standalone_mode=False, obj=obj)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"icestream: {error.format_message().rstrip('.')}{_hint(error)}", err=True)
        return error.exit_code
    except WorkerUnreachable as error:
        complain(error)
        return UNREACHABLE
    except IcestreamError as error:
        complain(error)
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
