"""`icestream completion`: the script by which a shell completes our commands."""

from __future__ import annotations

import click


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
