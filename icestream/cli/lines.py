"""Text of others as one safe line, and errors as such lines on stderr. Used by all commands."""

from __future__ import annotations

import click

from icestream.api.errors import ConfigError, IcestreamError


def one_line(text: str) -> str:
    """No line ends and no control characters, which a terminal would obey."""
    if text.isprintable():
        return text
    words = " ".join(text.split())
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in words)


def complain(error: IcestreamError) -> None:
    """One sentence for each thing that is wrong."""
    for problem in error.problems if isinstance(error, ConfigError) else [error]:
        click.echo(f"icestream: {one_line(str(problem))}", err=True)
