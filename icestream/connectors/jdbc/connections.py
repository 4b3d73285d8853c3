"""Opens connections to the database of a config: by its driver, with time limits, and some attempts.

Called by tasks, by the sink's targets and by the source. What drivers raise is told apart by the dialect, and
raised as our errors by `database_errors`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icestream import named_files
from icestream.api.config import Config
from icestream.api.errors import ConfigError, FatalError, Problem, SinkUnavailable
from icestream.connectors.jdbc.addresses import EXTRAS, URL, DatabaseAddress, database_address
from icestream.connectors.jdbc.dialects import dialect_of
from icestream.connectors.jdbc.dialects.base import Connection, Dialect, ErrorKind, TableId
from icestream.databases.addresses import FILES
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_LONGEST_PAUSE = 3600.0
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


@dataclass(frozen=True)
class Access:
    """How to reach the database of a connector. Plain data: tasks get it."""

    address: DatabaseAddress
    dialect: Dialect
    attempts: int = 3
    backoff_seconds: float = 10.0
    quotes_names: bool = True
    """`quote.sql.identifiers`."""

    def quote(self, name: str) -> str:
        """An identifier as statements have it. One that is not quoted must not be anything else."""
        if self.quotes_names:
            return self.dialect.quote(name)
        if not _PLAIN_NAME.fullmatch(name):
            raise FatalError(
                f"'{name}' cannot be written without quotation marks; set quote.sql.identifiers=ALWAYS"
            )
        return name

    def quoted_table(self, table: TableId) -> str:
        return ".".join(self.quote(part) for part in table if part)


def access_from(config: Config) -> Access:
    """Raises ConfigError. The keys are those of the sink and of the source alike."""
    address = database_address(config)
    attempts = int(config.get("connection.attempts", "3"))
    backoff = min(int(config.get("connection.backoff.ms", "10000")) / 1000, _LONGEST_PAUSE)
    quotes = config.get("quote.sql.identifiers", "ALWAYS").strip().upper() != "NEVER"
    return Access(address, dialect_of(address, config.get("dialect.name", "")), attempts, backoff, quotes)


class LoginRefused(FatalError):
    """The database does not accept the user or the password."""


def connect(access: Access, sleep: Callable[[float], None] = time.sleep) -> Connection:
    """A connection of one's own, to be closed after use. Nothing is committed by itself.

    SinkUnavailable after the last attempt; LoginRefused at once."""
    dialect = access.dialect
    _refuse_strange_files(access.address)
    for attempt in range(1, access.attempts + 1):
        try:
            with waiting_for(f"database: connecting to {access.address}"):
                return dialect.connect(access.address)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in EXTRAS:
                raise
            remedy = f"pip install 'icestream[{EXTRAS[missing]}]'"
            raise ConfigError(
                [Problem(URL, f"{URL}: Python's '{missing}' is missing; install it: {remedy}.")]
            ) from error
        except dialect.errors() as error:
            kind = dialect.kind_of(error)
            if kind is ErrorKind.LOGIN:
                raise LoginRefused(
                    f"{access.address} refuses the login: {dialect.told(error)}; correct connection.user and "
                    "connection.password, or their rights"
                ) from error
            _log.warning("attempt %d to reach %s failed: %s", attempt, access.address, dialect.told(error))
            if attempt >= access.attempts:
                raise SinkUnavailable(
                    f"{access.address} cannot be reached: {dialect.told(error)}; check connection.url, and "
                    "that the database runs"
                ) from error
            sleep(access.backoff_seconds)
    raise AssertionError("there is at least one attempt")


def _refuse_strange_files(address: DatabaseAddress) -> None:
    """Drivers wait for ever at a pipe, and not all of them stop at the end of a large file."""
    for name in FILES:
        if file := address.parameters.get(name):
            try:
                named_files.content(Path(file))
            except OSError as error:
                why = f"the file '{file}' cannot be read ({error.strerror}); correct it"
                raise ConfigError([Problem(URL, f"{URL}: parameter '{name}': {why}.")]) from None


@contextmanager
def connection_to(access: Access, doing: str) -> Iterator[Connection]:
    """A connection for some statements; closed in the end, and what was not committed is undone. `doing`
    completes "cannot …" in errors."""
    connection = connect(access)
    try:
        with database_errors(access, doing):
            yield connection
    finally:
        close(access, connection)


def close(access: Access, connection: Connection) -> None:
    """Also a connection that is broken."""
    try:
        connection.close()
    except access.dialect.errors():
        _log.debug("a connection to %s was closed already", access.address)


@contextmanager
def database_errors(access: Access, doing: str) -> Iterator[None]:
    """Raise our errors for those of the driver: SinkUnavailable if it may go away by itself."""
    dialect = access.dialect
    try:
        with waiting_for(f"database: {doing}"):
            yield
    except dialect.errors() as error:
        told = f"cannot {doing} at {access.address}: {dialect.told(error)}"
        if dialect.kind_of(error) is ErrorKind.RETRIABLE:
            raise SinkUnavailable(told) from error
        raise FatalError(told) from error
