"""What every command that talks to a worker has in common: its address, its output, its way to fail."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import IO, TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click

from icestream.api.errors import IcestreamError, NotFoundError, PreconditionError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from icestream.client import ConnectClient

DEFAULT_URL: Final = "http://127.0.0.1:8083"
EXIT_CODES: Final = """\b
Exit codes:
  0  done
  1  the worker said no, or a connector failed
  2  called wrongly
  3  no worker answers
"""
_COMPLETION_TIMEOUT: Final = 1.0
_GLOB: Final = frozenset("*?[")

P = ParamSpec("P")
T = TypeVar("T")
Command = Callable[..., T]


def talks_to_a_worker(command: Callable[Concatenate[ConnectClient, P], T]) -> Command[T]:
    """Options for the worker's address; the command gets the client as its first argument."""

    @functools.wraps(command)
    def with_client(
        url: str, user: str | None, cacert: str | None, insecure: bool, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with worker_client(url, user, cacert, insecure) as client:
            return command(client, *args, **kwargs)

    options = [
        click.option(
            "--url",
            envvar="ICESTREAM_URL",
            default=DEFAULT_URL,
            show_default=True,
            help="The REST address of a worker; also $ICESTREAM_URL.",
        ),
        click.option(
            "--user",
            envvar="ICESTREAM_USER",
            metavar="NAME:PASSWORD",
            help="For basic authentication; also $ICESTREAM_USER. Without a password, asks for it.",
        ),
        click.option(
            "--cacert",
            type=click.Path(exists=True, dir_okay=False),
            help="PEM file of the authorities to trust for https.",
        ),
        click.option("--insecure", is_flag=True, help="Take any certificate."),
    ]
    return _decorated(with_client, options)


def output_option(command: Command[T]) -> Command[T]:
    choice = click.Choice(["table", "json"])
    return click.option(
        "-o", "--output", type=choice, default="table", show_default=True, help="For people, or for programs."
    )(command)


def wait_options(command: Command[T]) -> Command[T]:
    options = [
        click.option("--wait", is_flag=True, help="Return when it is there, or has failed."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0),
            default=60.0,
            show_default=True,
            help="How many seconds --wait waits.",
        ),
    ]
    return _decorated(command, options)


def names_argument(*, required: bool = True) -> Callable[[Command[T]], Command[T]]:
    metavar = "NAME..." if required else "[NAME]..."
    return click.argument(
        "patterns", metavar=metavar, nargs=-1, required=required, shell_complete=connector_names
    )


def name_argument(command: Command[T]) -> Command[T]:
    return click.argument("name", metavar="NAME", shell_complete=connector_names)(command)


def connector_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return completed(ctx, incomplete, lambda client: client.names())


def completed(
    ctx: click.Context, incomplete: str, names: Callable[[ConnectClient], Iterable[str]]
) -> list[CompletionItem]:
    """Names that the worker knows, for the shell; none if it does not answer at once."""
    from click.shell_completion import CompletionItem

    given = ctx.params
    user = given.get("user")
    if user and ":" not in user:
        return []
    try:
        client = worker_client(
            given.get("url") or DEFAULT_URL,
            user,
            given.get("cacert"),
            bool(given.get("insecure")),
            _COMPLETION_TIMEOUT,
        )
        return [CompletionItem(name) for name in names(client) if name.startswith(incomplete)]
    except (IcestreamError, click.ClickException):
        return []


def matching(client: ConnectClient, patterns: Sequence[str], *, may_miss: bool = False) -> list[str]:
    """The names that are meant: a pattern (`*`, `?`, `[…]`) stands for all that match it, at least one."""
    if not any(_GLOB & set(pattern) for pattern in patterns):
        return list(dict.fromkeys(patterns))
    return chosen(client.names(), patterns, may_miss=may_miss)


def chosen(known: Sequence[str], patterns: Sequence[str], *, may_miss: bool = False) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        names = [pattern] if pattern in known else [name for name in known if fnmatchcase(name, pattern)]
        if not names and not may_miss:
            raise NotFoundError(f"no connector is called '{pattern}'; see 'icestream connectors'")
        found.update(dict.fromkeys(names))
    return list(found)


def called(file: IO[bytes]) -> str:
    """A file's name, as errors call it."""
    name = str(getattr(file, "name", "<stdin>"))
    return "stdin" if name == "<stdin>" else name


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_lines(lines: Sequence[str]) -> None:
    click.echo("\n".join(lines))


def worker_client(
    url: str, user: str | None, cacert: str | None, insecure: bool, timeout: float = 30.0
) -> ConnectClient:
    from icestream.client import ConnectClient, Credentials

    try:
        return ConnectClient(url, timeout, Credentials(_with_password(user), cacert, insecure))
    except PreconditionError as error:
        raise click.BadParameter(str(error), param_hint="--url") from None


def _with_password(user: str | None) -> str | None:
    if user is None or ":" in user:
        return user
    return f"{user}:{click.prompt(f'Password of {user}', hide_input=True, err=True)}"


def _decorated(command: Command[T], options: Sequence[Callable[[Any], Any]]) -> Command[T]:
    for option in reversed(options):
        command = option(command)
    return command
