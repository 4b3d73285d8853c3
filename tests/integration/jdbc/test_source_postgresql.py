"""The JDBC source on PostgreSQL: its modes, and the rows that other sources lose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest

from icestream.api.errors import FatalError
from icestream.api.offset_admin import OffsetEntry
from tests.databases import Server
from tests.integration.jdbc.source_reader import SourceReader

_NUMBERS = itertools.count(1)
Execute = Callable[..., Any]


@pytest.fixture
def connect(postgresql: Server) -> Iterator[Callable[[], Any]]:
    opened: list[Any] = []

    def connection() -> Any:
        opened.append(
            psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
        )
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


@pytest.fixture
def sql(connect: Callable[[], Any]) -> Execute:
    connection = connect()
    connection.autocommit = True

    def execute(statement: str, *parameters: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else None

    return execute


@pytest.fixture
def schema(sql: Execute) -> str:
    name = f"source_{next(_NUMBERS)}"
    sql(f"CREATE SCHEMA {name}")
    sql(f"SET search_path TO {name}")
    return name


@pytest.fixture
def start(postgresql: Server, schema: str) -> Iterator[Callable[..., SourceReader]]:
    started: list[SourceReader] = []

    def begin(stored: list[OffsetEntry] | None = None, tasks: int = 1, **settings: str) -> SourceReader:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        base = {**postgresql.settings, "topic.prefix": "p-", "schema.pattern": schema, **given}
        started.append(SourceReader(base, stored or [], tasks))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def test_rows_come_once_by_their_number(sql: Execute, start: Any, schema: str) -> None:
    sql("CREATE TABLE t (id bigserial PRIMARY KEY, name text)")
    sql("INSERT INTO t (name) SELECT 'n' || i FROM generate_series(1, 1000) i")
    reader = start(mode="incrementing", incrementing_column_name="id", table_whitelist="t")
    reader.quiet(limit=300)
    assert reader.ids("p-t") == list(range(1, 1001))
    assert reader.stored == [OffsetEntry({"protocol": "1", "table": f"{schema}.t"}, {"incrementing": 1000})]
    sql("INSERT INTO t (name) VALUES ('later')")
    reader.until(lambda: len(reader.ids("p-t")) == 1001)
    assert reader.rows["p-t"][-1] == {"id": 1001, "name": "later"}


def test_a_lower_number_that_is_committed_later_is_not_lost(sql: Execute, start: Any, connect: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, name text)")
    reader = start(mode="incrementing")
    slow = connect()
    slow.cursor().execute("SET search_path TO " + sql("SHOW search_path")[0][0])
    slow.cursor().execute("INSERT INTO t (name) VALUES ('slow')")
    sql("INSERT INTO t (name) VALUES ('fast')")
    reader.quiet()
    assert reader.ids("p-t") == []
    slow.commit()
    reader.until(lambda: len(reader.ids("p-t")) == 2)
    assert reader.ids("p-t") == [1, 2]


def _in_schema(connection: Any, schema: str) -> Any:
    cursor = connection.cursor()
    cursor.execute(f"SET search_path TO {schema}")
    connection.commit()
    return cursor


def test_an_uncommitted_row_of_a_partition_holds_up_its_parent(
    sql: Execute, start: Any, connect: Any, schema: str
) -> None:
    sql("CREATE TABLE t (id bigserial, day int NOT NULL) PARTITION BY LIST (day)")
    sql("CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1)")
    sql("CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2)")
    reader = start(
        mode="incrementing",
        incrementing_column_name="id",
        table_types="PARTITIONED TABLE",
        table_whitelist="t",
    )
    slow = connect()
    _in_schema(slow, schema).execute("INSERT INTO t1 (id, day) VALUES (nextval('t_id_seq'), 1)")
    sql("INSERT INTO t (day) VALUES (2)")
    reader.quiet()
    assert reader.ids("p-t") == []
    slow.commit()
    reader.until(lambda: reader.ids("p-t") == [1, 2])


@pytest.mark.parametrize("of", ["view", "query"])
def test_an_uncommitted_row_holds_up_views_and_queries_of_its_table(
    sql: Execute, start: Any, connect: Any, schema: str, of: str
) -> None:
    sql("CREATE TABLE t (id bigserial PRIMARY KEY, name text DEFAULT 'a%b')")
    sql("CREATE VIEW v AS SELECT * FROM t")
    query = f"SELECT * FROM {schema}.t WHERE name LIKE '%a%'"
    settings = {"query": query} if of == "query" else {"table_types": "VIEW", "validate_non_null": "false"}
    waits = {"icestream_jdbc_transaction_wait_ms": "0"}
    reader = start(mode="incrementing", incrementing_column_name="id", **settings, **waits)
    topic = "p-" if of == "query" else "p-v"
    slow = connect()
    _in_schema(slow, schema).execute("INSERT INTO t DEFAULT VALUES")
    sql("INSERT INTO t DEFAULT VALUES")
    reader.quiet()
    assert reader.rows == {}
    slow.commit()
    reader.until(lambda: reader.ids(topic) == [1, 2])


def test_a_transaction_that_is_rolled_back_holds_nothing_up_for_long(
    sql: Execute, start: Any, connect: Any, schema: str
) -> None:
    sql("CREATE TABLE t (id bigserial PRIMARY KEY)")
    reader = start(mode="incrementing")
    slow = connect()
    _in_schema(slow, schema).execute("INSERT INTO t DEFAULT VALUES")
    sql("INSERT INTO t DEFAULT VALUES")
    reader.quiet()
    slow.rollback()
    reader.until(lambda: reader.ids("p-t") == [2])


def test_a_row_with_the_time_of_a_long_transaction_is_not_lost(
    sql: Execute, start: Any, connect: Any, schema: str
) -> None:
    """Its timestamp is that of the transaction's beginning, when it had not touched the table yet."""
    sql("CREATE TABLE t (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
    reader = start(mode="timestamp", timestamp_column_name="at")
    slow = connect()
    cursor = _in_schema(slow, schema)
    cursor.execute("SELECT now()")
    sql("INSERT INTO t DEFAULT VALUES")
    reader.quiet()
    assert reader.ids("p-t") == []
    cursor.execute("INSERT INTO t DEFAULT VALUES")
    reader.quiet()
    slow.commit()
    reader.until(lambda: len(reader.ids("p-t")) == 2)
    assert reader.ids("p-t") == [2, 1]


def test_transactions_that_do_not_write_are_not_waited_for_longer_than_the_limit(
    sql: Execute, start: Any, connect: Any, schema: str
) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t DEFAULT VALUES")
    settings = {"icestream_jdbc_transaction_wait_ms": "700"}
    reader = start(mode="incrementing", **settings)
    idle, writing = connect(), connect()
    _in_schema(idle, schema).execute("SELECT 1")
    reader.quiet(0.2)
    assert reader.ids("p-t") == []
    reader.until(lambda: reader.ids("p-t") == [1])
    cursor = _in_schema(writing, schema)
    cursor.execute("INSERT INTO t DEFAULT VALUES")
    sql("INSERT INTO t DEFAULT VALUES")
    reader.quiet(1.5)
    assert reader.ids("p-t") == [1]
    writing.commit()
    # The one that idles is known to do so, and holds nothing up any more.
    reader.until(lambda: reader.ids("p-t") == [1, 2, 3])


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "key", ["id serial PRIMARY KEY", "id text NOT NULL, other int, PRIMARY KEY (other, id)"]
)
def test_rows_of_one_timestamp_are_all_read_wherever_a_batch_ends(
    sql: Execute, start: Any, limit: int, key: str
) -> None:
    sql(f"CREATE TABLE t ({key}, at timestamp NOT NULL)")
    others = ", other" if "other" in key else ""
    for second, count in ((1, 1), (2, 5), (3, 1), (4, 8), (5, 2)):
        at = f"timestamp '2024-01-01 00:00:0{second}.123456'"
        values = ", i % 3" if others else ""
        sql(
            f"INSERT INTO t (at, id{others}) SELECT {at}, i + {second} * 100{values} FROM "
            f"generate_series(1, {count}) i"
        )
    reader = start(mode="timestamp", timestamp_column_name="at")
    while reader.turn(limit):
        reader.seek()
    again = start(reader.stored, mode="timestamp", timestamp_column_name="at")
    again.quiet(0.2)
    assert again.rows == {}
    ids = reader.ids("p-t")
    assert len(ids) == len(set(ids)) == 17
    assert [row["at"] for row in reader.rows["p-t"]] == sorted(row["at"] for row in reader.rows["p-t"])
    (stored,) = reader.stored
    if limit == 1000:
        assert stored.offset == {"timestamp": 1704067205123, "timestamp_nanos": 123456000}


def test_rows_of_one_timestamp_without_a_key_come_together(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id int NOT NULL, at timestamp NOT NULL)")
    sql(
        "INSERT INTO t SELECT i, timestamp '2024-01-01' + (i / 10) * interval '1 second' FROM "
        "generate_series(0, 99) i"
    )
    reader = start(mode="timestamp", timestamp_column_name="at")
    while reader.turn(25):
        reader.seek()
    assert sorted(reader.ids("p-t")) == list(range(100))


def test_timestamp_and_number(sql: Execute, start: Any) -> None:
    sql(
        "CREATE TABLE t (id serial PRIMARY KEY, name text, created timestamptz NOT NULL DEFAULT now(), "
        "changed timestamptz)"
    )
    sql("INSERT INTO t (name) SELECT 'a' FROM generate_series(1, 10)")
    settings = {"mode": "timestamp+incrementing", "timestamp_column_name": "changed,created"}
    reader = start(incrementing_column_name="id", **settings)
    while reader.turn(3):
        reader.seek()
    assert reader.ids("p-t") == list(range(1, 11))
    sql("UPDATE t SET name = 'b', changed = now() WHERE id IN (2, 5)")
    sql("INSERT INTO t (name) VALUES ('c')")
    reader.quiet(0.6)
    assert reader.ids("p-t")[10:] == [2, 5, 11]
    (stored,) = reader.stored
    assert stored.offset is not None and set(stored.offset) == {
        "incrementing",
        "timestamp",
        "timestamp_nanos",
    }


def test_rows_younger_than_the_delay_wait(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, at timestamptz NOT NULL)")
    sql(
        "INSERT INTO t (at) VALUES (now() - interval '2 hours'), (now() - interval '10 minutes'), (now() "
        "+ interval '1 day')"
    )
    reader = start(mode="timestamp", timestamp_column_name="at", timestamp_delay_interval_ms="3600000")
    reader.quiet()
    assert reader.ids("p-t") == [1]
    reader = start(mode="timestamp", timestamp_column_name="at")
    reader.quiet()
    assert reader.ids("p-t") == [1, 2]


def test_the_first_start_is_remembered(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
    sql("INSERT INTO t DEFAULT VALUES")
    first = start(mode="timestamp", timestamp_column_name="at", timestamp_initial="-1")
    first.quiet(0.2)
    assert first.rows == {} and len(first.stored) == 1
    first.close()
    sql("INSERT INTO t DEFAULT VALUES")
    second = start(first.stored, mode="timestamp", timestamp_column_name="at", timestamp_initial="-1")
    second.until(lambda: second.ids("p-t") == [2])


@pytest.mark.parametrize("name", ["timestamp_initial", "timestamp_initial_ms"])
def test_a_first_read_may_begin_later(sql: Execute, start: Any, name: str) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, at timestamp NOT NULL)")
    sql("INSERT INTO t (at) VALUES ('2024-01-01'), ('2024-01-02'), ('2024-01-03')")
    reader = start(mode="timestamp", timestamp_column_name="at", **{name: "1704067200000"})
    reader.quiet(0.2)
    assert reader.ids("p-t") == [2, 3]
    by_number = start(mode="incrementing", incrementing_initial="2")
    by_number.quiet(0.2)
    assert by_number.ids("p-t") == [3]


def test_a_clock_of_another_zone(sql: Execute, start: Any) -> None:
    """Writers in New York, whose clock the config names: rows are neither held up for hours nor lost."""
    sql(
        "CREATE TABLE t (id serial PRIMARY KEY, at timestamp NOT NULL DEFAULT (now() AT TIME ZONE "
        "'America/New_York'))"
    )
    reader = start(mode="timestamp", timestamp_column_name="at", db_timezone="America/New_York")
    for number in range(1, 4):
        sql("INSERT INTO t DEFAULT VALUES")
        reader.until(lambda number=number: len(reader.ids("p-t")) == number)
    ((now,),) = sql("SELECT (extract(epoch FROM now()) * 1000)::bigint")
    (stored,) = reader.stored
    assert stored.offset is not None and abs(stored.offset["timestamp"] - now) < 600_000
    assert abs(reader.rows["p-t"][0]["at"].timestamp() * 1000 - now) < 600_000


def test_all_rows_in_every_poll(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t SELECT FROM generate_series(1, 10)")
    reader = start(mode="bulk")
    reader.until(lambda: len(reader.ids("p-t")) >= 30, limit=4)
    assert reader.ids("p-t")[:30] == [*range(1, 11)] * 3


def test_a_dump_goes_on_after_the_last_key(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t SELECT FROM generate_series(1, 10)")
    reader = start(mode="bulk", poll_interval_ms="3600000")
    reader.turn(4)
    reader.close()
    again = start(reader.stored, mode="bulk", poll_interval_ms="3600000")
    again.quiet(0.2)
    assert again.ids("p-t") == [5, 6, 7, 8, 9, 10]
    third = start(again.stored, mode="bulk", poll_interval_ms="3600000")
    third.quiet(0.2)
    assert third.rows == {}


def test_a_dump_of_a_table_without_a_key(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id int)")
    sql("INSERT INTO t SELECT i FROM generate_series(1, 10) i")
    reader = start(mode="bulk", poll_interval_ms="3600000")
    reader.quiet(0.2, limit=3)
    assert sorted(reader.ids("p-t")) == list(range(1, 11))


def test_rows_of_a_query(sql: Execute, start: Any, schema: str) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, name text, n numeric(4, 0) NOT NULL DEFAULT 5)")
    sql("INSERT INTO t (name) VALUES ('a'), ('b'), ('c')")
    query = f"SELECT id, upper(name) AS name, n FROM {schema}.t WHERE name <> 'b';"
    for key in ("query", "query_masked"):
        reader = start(
            mode="incrementing", incrementing_column_name="id", numeric_mapping="best_fit", **{key: query}
        )
        reader.quiet(0.2)
        assert reader.rows == {"p-": [{"id": 1, "name": "A", "n": 5}, {"id": 3, "name": "C", "n": 5}]}
        assert reader.stored == [OffsetEntry({"query": "query"}, {"incrementing": 3})]
    value = reader.batches[0].records[0].value
    assert [field.schema.optional for field in value.schema.fields] == [False, True, False]
    assert value.schema.name is None


def test_a_suffix_ends_every_statement(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t SELECT FROM generate_series(1, 10)")
    reader = start(mode="incrementing", query_suffix="LIMIT 4")
    reader.until(lambda: len(reader.ids("p-t")) == 10)
    assert reader.ids("p-t") == list(range(1, 11))


def test_tables_that_appear_later_are_found(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE a (id serial PRIMARY KEY)")
    reader = start(mode="incrementing", table_poll_interval_ms="100", tasks=3)
    sql("INSERT INTO a DEFAULT VALUES")
    reader.until(lambda: reader.ids("p-a") == [1])
    for name in ("b", "c", "d", "e"):
        sql(f"CREATE TABLE {name} (id serial PRIMARY KEY)")
        sql(f"INSERT INTO {name} DEFAULT VALUES")
    reader.until(lambda: all(reader.ids(f"p-{name}") == [1] for name in "abcde"))
    sql("DROP TABLE a")
    sql("INSERT INTO b DEFAULT VALUES")
    reader.until(lambda: reader.ids("p-b") == [1, 2])


def test_a_table_that_comes_back_goes_on_where_it_was(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE a (id serial PRIMARY KEY)")
    sql("INSERT INTO a DEFAULT VALUES")
    reader = start(mode="incrementing", table_poll_interval_ms="50", table_whitelist="a,b")
    reader.until(lambda: reader.ids("p-a") == [1])
    sql("ALTER TABLE a RENAME TO hidden")
    reader.quiet(0.3)
    sql("INSERT INTO hidden DEFAULT VALUES")
    sql("ALTER TABLE hidden RENAME TO a")
    reader.until(lambda: reader.ids("p-a") == [1, 2])


def test_a_new_column_is_sent_with_the_next_rows(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t DEFAULT VALUES")
    reader = start(mode="incrementing")
    reader.until(lambda: reader.ids("p-t") == [1])
    sql("ALTER TABLE t ADD COLUMN name text")
    sql("INSERT INTO t (name) VALUES ('x')")
    reader.until(lambda: reader.rows["p-t"][1:] == [{"id": 2, "name": "x"}])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"table_whitelist": "aa"}, {"aa"}),
        ({"table_whitelist": "{schema}.aa,b"}, {"aa", "b"}),
        ({"table_blacklist": "aa"}, {"ab", "b"}),
        ({"table_include_list": ".*a.?,nothing"}, {"aa", "ab"}),
        ({"table_exclude_list": "{schema}\\.a.*"}, {"b"}),
        ({"catalog_pattern": "no such"}, set()),
        ({"table_types": "VIEW"}, {"v"}),
        ({"table_types": "TABLE,VIEW"}, {"aa", "ab", "b", "v"}),
    ],
)
def test_which_tables_are_read(
    sql: Execute, start: Any, schema: str, settings: dict[str, str], expected: set[str]
) -> None:
    for name in ("aa", "ab", "b"):
        sql(f"CREATE TABLE {name} (id serial PRIMARY KEY)")
        sql(f"INSERT INTO {name} DEFAULT VALUES")
    sql("CREATE VIEW v AS SELECT * FROM b")
    given = {key: value.replace("{schema}", schema) for key, value in settings.items()}
    reader = start(mode="incrementing", incrementing_column_name="id", validate_non_null="false", **given)
    reader.quiet(0.2)
    assert {topic.removeprefix("p-") for topic in reader.rows} == expected


def test_columns_by_table(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE a (a_id int NOT NULL, at timestamp NOT NULL)")
    sql("CREATE TABLE b (b_id int NOT NULL, created timestamp, changed timestamp NOT NULL)")
    sql("INSERT INTO a VALUES (1, '2024-01-01')")
    sql("INSERT INTO b VALUES (2, '2024-01-01', '2024-01-01')")
    mapping = {
        "incrementing_column_mapping": ".*\\.a:a_id,.*\\.b:b_id",
        "timestamp_columns_mapping": ".*\\.a:[at],.*\\.b:[created|changed]",
    }
    reader = start(mode="timestamp+incrementing", **mapping)
    reader.quiet(0.2)
    assert reader.rows["p-a"][0]["a_id"] == 1 and reader.rows["p-b"][0]["b_id"] == 2


def test_two_tables_of_one_name_are_refused(sql: Execute, start: Any, schema: str) -> None:
    sql(f"CREATE TABLE {schema}.twice (id serial PRIMARY KEY)")
    sql(f"DROP SCHEMA IF EXISTS {schema}_b CASCADE")
    sql(f"CREATE SCHEMA {schema}_b")
    sql(f"CREATE TABLE {schema}_b.twice (id serial PRIMARY KEY)")
    with pytest.raises(FatalError, match="would share one topic"):
        start(mode="incrementing", schema_pattern=f"{schema}%")


def test_columns_that_may_be_null_are_refused(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id int, at timestamp)")
    sql("INSERT INTO t VALUES (1, '2024-01-01')")
    for mode in ("incrementing", "timestamp"):
        settings = {"mode": mode, "incrementing_column_name": "id", "timestamp_column_name": "at"}
        with pytest.raises(FatalError, match=r"validate\.non\.null=false"):
            start(**settings).turn()
        reader = start(**settings, validate_non_null="false")
        reader.quiet(0.2)
        assert reader.ids("p-t") == [1]


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("text", "'Grace'", "type text has no whole numbers; name another in incrementing.column.name"),
        ("numeric(10,2)", "1.5", r"type numeric\(10,2\) has no whole numbers"),
        ("double precision", "1.5", "type double precision has no whole numbers"),
    ],
)
def test_columns_without_whole_numbers_are_refused(
    sql: Execute, start: Any, kind: str, value: str, reason: str
) -> None:
    """Offsets are whole numbers: the row of a fraction came again and again."""
    sql(f"CREATE TABLE t (id {kind} NOT NULL)")
    sql(f"INSERT INTO t SELECT unnest(ARRAY[{value}])")
    with pytest.raises(FatalError, match=reason):
        start(mode="incrementing", incrementing_column_name="id").turn()


@pytest.mark.parametrize("kind", ["date", "bigint", "text"])
def test_columns_that_tell_no_time_are_refused(sql: Execute, start: Any, kind: str) -> None:
    sql(f"CREATE TABLE t (id int NOT NULL, at {kind} NOT NULL)")
    with pytest.raises(FatalError, match=f"'at', whose type {kind} tells no time of day; name a timestamp"):
        start(mode="timestamp", timestamp_column_name="at").turn()


def test_whole_numbers_may_be_decimals(sql: Execute, start: Any) -> None:
    sql("CREATE TABLE t (id numeric(10) NOT NULL)")
    sql("INSERT INTO t VALUES (1), (2)")
    reader = start(mode="incrementing", incrementing_column_name="id")
    reader.quiet(0.2)
    assert reader.ids("p-t") == [1, 2]


def test_names_in_any_case(sql: Execute, start: Any) -> None:
    sql('CREATE TABLE t ("Id" int NOT NULL)')
    sql("INSERT INTO t VALUES (1)")
    with pytest.raises(FatalError, match="there is 'Id'"):
        start(mode="incrementing", incrementing_column_name="ID").turn()
    reader = start(mode="incrementing", incrementing_column_name="ID", quote_sql_identifiers="NEVER")
    reader.until(lambda: reader.rows.get("p-t") == [{"Id": 1}])


@pytest.mark.parametrize(
    "partition",
    [
        {"table": "t"},
        {"protocol": "1", "table": "t"},
        {"protocol": "1", "table": "{schema}.t"},
        {"protocol": "1", "table": "records.{schema}.t"},
    ],
)
def test_offsets_of_java_are_taken_over(
    sql: Execute, start: Any, schema: str, partition: dict[str, str]
) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, at timestamp NOT NULL)")
    sql(
        "INSERT INTO t (at) SELECT timestamp '2024-01-01' + i * interval '1 microsecond' FROM "
        "generate_series(1, 9) i"
    )
    named = {key: value.replace("{schema}", schema) for key, value in partition.items()}
    offset = {"incrementing": 4, "timestamp": 1704067200000, "timestamp_nanos": 4000}
    settings = {"timestamp_column_name": "at", "incrementing_column_name": "id"}
    for mode in ("incrementing", "timestamp", "timestamp+incrementing"):
        reader = start([OffsetEntry(named, offset)], mode=mode, **settings)
        reader.quiet(0.2)
        assert reader.ids("p-t") == [5, 6, 7, 8, 9]
        assert [entry.partition for entry in reader.stored] == [named]


@pytest.mark.parametrize("mode", ["READ_UNCOMMITED", "READ_COMMITED", "REPEATABLE_READ", "SERIALIZABLE"])
def test_isolation(sql: Execute, start: Any, mode: str) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY)")
    sql("INSERT INTO t DEFAULT VALUES")
    reader = start(mode="incrementing", transaction_isolation_mode=mode)
    reader.until(lambda: reader.ids("p-t") == [1])
