"""Reads one table, or one query: window after window, each as a stream of rows. `source.py` has one for each.

A window is read in pages, each a statement of its own, so that no statement takes hours; rows of a page are
handed out in the batches that the manager asks for.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icestream.api.errors import FatalError
from icestream.connectors.jdbc.dialects.base import Connection, TableId
from icestream.connectors.jdbc.source.columns import instants
from icestream.connectors.jdbc.source.commit_order import CommitWait, TransactionAges
from icestream.connectors.jdbc.source.offsets import Key, Position
from icestream.connectors.jdbc.source.pages import Page
from icestream.connectors.jdbc.source.sessions import Session
from icestream.connectors.jdbc.source.settings import SourceSettings
from icestream.connectors.jdbc.source.table_facts import TableDescriber, TableFacts
from icestream.connectors.jdbc.source.windows import Window, select_newest, select_rows, settled

_log = logging.getLogger(__name__)

PAGE_ROWS: Final = 500_000
MOST_OF_ONE_TIMESTAMP: Final = 1_000_000


@dataclass(frozen=True)
class ReadRows:
    rows: pa.RecordBatch
    facts: TableFacts
    after: Position


class TableReader:
    def __init__(
        self,
        session: Session,
        settings: SourceSettings,
        table: TableId | None,
        ages: TransactionAges,
        clock: Callable[[], float],
        wall_ms: Callable[[], int],
        page_rows: int = PAGE_ROWS,
    ) -> None:
        self.table = table
        self._session = session
        self._settings = settings
        self._describer = TableDescriber(session.database, settings, table)
        self.name = self._describer.name
        self._ages = ages
        self._clock = clock
        self._wall_ms = wall_ms
        self._page_rows = page_rows
        self._due = 0.0
        self._position = Position()
        self._facts: TableFacts | None = None
        self._window: Window | None = None
        self._wait: CommitWait | None = None
        self._page: Page | None = None
        self._told_wait = 0.0

    def seek(self, position: Position) -> None:
        self.close()
        self._due = 0.0
        self._position = position

    def close(self) -> None:
        page, self._page = self._page, None
        self._window = self._wait = self._facts = None
        if page is not None:
            page.close()

    def read(self, limit: int) -> ReadRows | None:
        """The next rows; None if there are none now."""
        if self._page is None and not self._open():
            return None
        page, facts = self._page, self._facts
        assert page is not None and facts is not None
        limit = min(limit, self._settings.most)
        count, has_more = page.fill(limit)
        if count == 0:
            self._end_page(page)
            return self.read(limit) if self._window is not None else self._ended_dump()
        rows, after = self._cut(page, facts, count, has_more)
        page.drop(rows.num_rows)
        if not page.has_rows and page.is_ended:
            self._end_page(page)
            if self._window is None and facts.cursors.is_bulk:
                after = self._dumped(after)
        self._position = after
        return ReadRows(rows, facts, after)

    def initial_position(self) -> Position | None:
        """Where a table without an offset begins; None: at its beginning."""
        settings = self._settings
        found = Position()
        if settings.has_number and settings.number_initial is not None:
            found = dataclasses.replace(found, incrementing=settings.number_initial)
        if settings.has_timestamp and settings.timestamp_initial is not None:
            at = settings.timestamp_initial * 1_000_000
            if settings.timestamp_initial == -1:
                at = self._session.ask(self._session.database.now, "ask for the time")
            found = dataclasses.replace(found, timestamp=at)
        return found if found != Position() else None

    # -- windows --

    def _open(self) -> bool:
        """Whether there is a page to read."""
        now = self._clock()
        if self._window is None:
            if now < self._due:
                return False
            self._due = now + self._settings.poll_seconds
            self._begin(now)
        if self._window is None or not self._is_settled():
            return False
        assert self._facts is not None
        self._open_page(self._window, self._facts)
        return True

    def _begin(self, now: float) -> None:
        facts = self._session.ask(self._describer.facts, f"look at {self.name}")
        if facts is None:
            return
        self._facts = facts
        if facts.cursors.is_bulk:
            if self._is_dump_due():
                self._window = Window(self._position)
            return
        window = self._session.ask(
            lambda connection: self._newest(connection, facts), f"look for rows of {self.name}"
        )
        if window is None:
            return
        self._window = window
        self._wait = CommitWait.begin(self._transactions, self._ages, self._settings.wait_seconds, now)

    def _newest(self, connection: Connection, facts: TableFacts) -> Window | None:
        database, cursors = self._session.database, facts.cursors
        before = None
        if cursors.timestamp is not None:
            unit = 10 ** (9 - facts.digits)
            now = settled(database.now(connection), cursors.zone)
            before = (now - self._settings.delay) // unit * unit
        statement = select_newest(self._source, self._position, cursors, before)
        newest = database.newest(connection, statement, cursors)
        if newest is None:
            return None
        if cursors.timestamp is not None:
            return Window(self._position, timestamp=newest)
        return Window(self._position, number=newest)

    def _is_settled(self) -> bool:
        if self._wait is None:
            return True
        now = self._clock()
        left = self._wait.left(self._transactions, self._ages, now)
        if left and now - max(self._wait.begun, self._told_wait) > 30:
            self._told_wait = now
            _log.warning(
                "new rows of %s wait for %d open transaction(s) that may write earlier ones: %s",
                self.name,
                len(left),
                ", ".join(sorted(left)[:5]),
            )
        if left:
            return False
        self._wait = None
        return True

    def _transactions(self) -> Any:
        by_timestamp = self._settings.has_timestamp
        return self._session.ask(
            lambda connection: self._session.database.open_transactions(
                connection, self.table, by_timestamp=by_timestamp
            ),
            "look for open transactions",
        )

    # -- pages --

    def _open_page(self, window: Window, facts: TableFacts) -> None:
        ordered = bool(facts.cursors.number or facts.cursors.keys)
        most = self._page_rows if ordered else None
        statement = select_rows(
            [column.select for column in facts.columns],
            self._source,
            dataclasses.replace(window, start=self._position),
            facts.cursors,
            most,
            self._settings.suffix,
        )
        doing = f"read {self.name}"
        self._page = Page(self._session.stream(statement, facts.columns, doing), most)

    def _end_page(self, page: Page) -> None:
        self._page = None
        page.close()
        if not page.is_full:
            self._window = None

    def _cut(
        self, page: Page, facts: TableFacts, count: int, has_more: bool
    ) -> tuple[pa.RecordBatch, Position]:
        """At most `count` rows, and the position after them."""
        rows = page.rows(count)
        cursors = facts.cursors
        if cursors.is_bulk:
            key = self._key(rows, facts, count - 1)
            return rows, dataclasses.replace(self._position, dumps=self._position.dumps or 0, dump_key=key)
        number = None if facts.number is None else self._whole(rows.column(facts.number)[count - 1].as_py())
        if cursors.timestamp is None:
            return rows, Position(incrementing=number)
        if number is not None:
            return rows, Position(number, self._moments(rows.slice(count - 1), facts)[0].as_py() * 1000)
        return self._cut_by_timestamp(page, facts, count, has_more)

    def _whole(self, value: Any) -> int:
        """Of a NUMERIC without digits, which may hold fractions."""
        number = Decimal(value.decode() if isinstance(value, bytes) else value)
        if number % 1:
            raise FatalError(
                f"{self.name} has the number {number}, which is no whole one, in the column that it is "
                "read by; name another in incrementing.column.name"
            )
        return int(number)

    def _cut_by_timestamp(
        self, page: Page, facts: TableFacts, count: int, has_more: bool
    ) -> tuple[pa.RecordBatch, Position]:
        """Rows of one timestamp belong together: the position is behind all of them, or says which of
        them was sent last."""
        while True:
            moments = self._moments(page.rows(count + 1 if has_more else count), facts).to_numpy()
            last = int(moments[count - 1])
            continues = has_more and int(moments[count]) == last
            if not continues and not (page.is_full and not has_more):
                return page.rows(count), Position(timestamp=last * 1000)
            first = int((moments[:count] < last).sum())
            if facts.keys:
                before = int(moments[first - 1]) * 1000 if first else self._position.timestamp
                rows = page.rows(count)
                key = self._key(rows, facts, count - 1)
                assert key is not None
                return rows, Position(timestamp=before, part=(last * 1000, key))
            if first:
                return page.rows(first), Position(timestamp=int(moments[first - 1]) * 1000)
            if count >= MOST_OF_ONE_TIMESTAMP:
                raise FatalError(
                    f"{self.name} has more than {MOST_OF_ONE_TIMESTAMP:,} rows of one timestamp, and no "
                    "primary key by which they could be read in parts; add one, or use "
                    "mode=timestamp+incrementing"
                )
            count, has_more = page.fill(count * 2, any_size=True)

    def _moments(self, rows: pa.RecordBatch, facts: TableFacts) -> pa.Array:
        """The timestamps that rows are read by: microseconds since 1970, as int64."""
        # As the database compares them: beside one with a zone, a timestamp without one is in UTC there.
        zone = str(facts.cursors.zone)
        found = []
        for place in facts.timestamps:
            values = rows.column(place)
            if pa.types.is_integer(values.type):
                found.append(pc.multiply(values.cast(pa.int64()), 1000))
                continue
            if pa.types.is_date(values.type):
                values = values.cast(pa.timestamp("us"))
            try:
                found.append(instants(values, zone, nonexistent="raise").cast(pa.int64()))
            except pa.ArrowInvalid as error:
                raise FatalError(
                    f"{self.name} has a timestamp that clocks of db.timezone={zone} never showed "
                    f"({str(error).splitlines()[0]}); set db.timezone to the zone of its writers"
                ) from error
        return found[0] if len(found) == 1 else pc.coalesce(*found)

    def _key(self, rows: pa.RecordBatch, facts: TableFacts, row: int) -> Key | None:
        return tuple(rows.column(place)[row].as_py() for place in facts.keys) or None

    # -- bulk --

    def _is_dump_due(self) -> bool:
        ended = self._position.dumped_at
        if ended is None or self._position.dump_key is not None:
            return True
        return self._wall_ms() - ended >= self._settings.poll_seconds * 1000

    def _dumped(self, position: Position) -> Position:
        return Position(dumps=(position.dumps or 0) + 1, dumped_at=self._wall_ms())

    def _ended_dump(self) -> ReadRows | None:
        """An empty rest: nothing is sent, and the next dump begins with the first row."""
        if self._position.dump_key is not None:
            self._position = self._dumped(self._position)
        return None

    # -- the table --

    @property
    def _source(self) -> str:
        if self.table is None:
            return f"({self._settings.query}) q"
        return self._session.database.dialect.quoted_table(self._as_named())

    def _as_named(self) -> TableId:
        assert self.table is not None
        # PostgreSQL's statements name no other database than that of the connection.
        return TableId("", self.table.schema, self.table.name) if self.table.schema else self.table
