"""The list of MySQL's open transactions, as far as it can be known to be new."""

from __future__ import annotations

from icestream.connectors.jdbc.source.databases.mysql import _listed_now


class OldList:
    """A connection to a server whose list of transactions others keep alive: ours is never in it."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def cursor(self) -> OldList:
        return self

    def execute(self, statement: str) -> int:
        self.statements.append(statement.split()[0])
        return 0

    rowcount = 0

    def fetchall(self) -> list[tuple[object, ...]]:
        return [("7 2026-11-18 12:00:00", 1, 0, 0)]

    def close(self) -> None: ...


def test_of_a_list_that_nobody_gets_anew_nothing_is_claimed() -> None:
    connection, pauses = OldList(), list[float]()
    assert _listed_now(connection, pauses.append) is None  # type: ignore[arg-type]
    assert len(pauses) == 20 and min(pauses) > 0.1
    assert connection.statements[0] == "START" and connection.statements[-1] == "ROLLBACK"
