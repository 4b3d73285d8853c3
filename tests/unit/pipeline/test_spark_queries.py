"""Queries of jobs: sessions that are kept and not mixed, and errors in our words. Spark itself is a fake."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from icestream.api.connector import SparkCatalog
from icestream.api.errors import Cancelled, FatalError, SinkUnavailable
from icestream.api.queries import Query
from icestream.pipeline.spark_queries import JobQueries, SessionPool
from icestream.traces import shown_trace

CATALOG = SparkCatalog("lake", "some.SparkCatalog", {"uri": "there"}, jars=["group:runtime:1"])


class FakeConf(dict[str, str]):
    set = dict.__setitem__
    unset = dict.pop


class FakeSession:
    """A Spark session; those beside it are counted."""

    def __init__(self) -> None:
        self.conf = FakeConf()
        self.beside: list[FakeSession] = []
        self.interrupted: list[str] = []

    def newSession(self) -> FakeSession:
        self.beside.append(FakeSession())
        return self.beside[-1]

    def addTag(self, tag: str) -> None: ...

    def removeTag(self, tag: str) -> None: ...

    def interruptTag(self, tag: str) -> None:
        self.interrupted.append(tag)


class FakeLasting:
    def __init__(self) -> None:
        self.session: Any = FakeSession()
        self.lost = False

    def current(self) -> Any:
        return self.session

    def has_lost(self, session: object) -> bool:
        return self.lost


@pytest.fixture
def lasting() -> FakeLasting:
    return FakeLasting()


@pytest.fixture
def cancelled() -> threading.Event:
    return threading.Event()


@pytest.fixture
def queries(lasting: Any, cancelled: threading.Event) -> JobQueries:
    return JobQueries(lasting, SessionPool(lasting), "job", cancelled)


def nothing(query: Query) -> None: ...


def test_a_session_has_the_catalog_and_serves_again_without_the_settings_before(
    queries: JobQueries, lasting: FakeLasting
) -> None:
    seen: list[dict[str, str]] = []
    for summary in ("one", "two"):
        queries.work(
            CATALOG,
            {f"of {summary}": summary},
            lambda query: seen.append(dict(lasting.session.beside[-1].conf)),
            "a test",
        )
    assert len(lasting.session.beside) == 1 and not lasting.session.conf
    catalog = {"spark.sql.catalog.lake": "some.SparkCatalog", "spark.sql.catalog.lake.uri": "there"}
    assert seen == [{**catalog, "of one": "one"}, {**catalog, "of two": "two"}]


def test_work_at_the_same_time_shares_no_session(queries: JobQueries, lasting: FakeLasting) -> None:
    queries.work(CATALOG, {}, lambda query: queries.work(CATALOG, {}, nothing, "inner"), "outer")
    assert len(lasting.session.beside) == 2
    queries.work(CATALOG, {}, lambda query: queries.work(CATALOG, {}, nothing, "inner"), "outer")
    assert len(lasting.session.beside) == 2


def test_other_catalogs_and_a_spark_that_came_back_have_sessions_of_their_own(
    queries: JobQueries, lasting: FakeLasting
) -> None:
    first = lasting.session
    queries.work(CATALOG, {}, nothing, "a test")
    queries.work(SparkCatalog("lake", "some.SparkCatalog", {"uri": "elsewhere"}), {}, nothing, "a test")
    assert len(first.beside) == 2
    lasting.session = FakeSession()
    queries.work(CATALOG, {}, nothing, "a test")
    assert len(first.beside) == 2 and len(lasting.session.beside) == 1


class Told(Py4JJavaError):
    """An error of Java, as py4j passes it on: with its whole stack in its words."""

    def __init__(self, words: str) -> None:
        Exception.__init__(self, words)

    def __str__(self) -> str:
        return f"An error occurred while calling o1.sql.\n{self.args[0]}"


def raising(error: Exception) -> Any:
    def work(query: Query) -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (PySparkException("Job aborted\n  at Java.java"), SinkUnavailable, "merging: .*Job aborted$"),
        (Py4JError("the gateway is closed"), SinkUnavailable, "gateway"),
        (AnalysisException("[UNRESOLVED_COLUMN] no x"), FatalError, "Spark refuses it"),
        (
            Told(
                ": org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'a': some."
            ),
            FatalError,
            "spark.jars.packages=group:runtime:1",
        ),
        (
            Told(
                ": some.UncheckedSQLException: Failed to connect\n\tat some.SparkCatalog.initialize\n"
                "Caused by: java.sql.SQLException: No suitable driver found for jdbc:sqlite:/x\n\t... 9 more"
            ),
            FatalError,
            "spark.jars.packages=group:runtime:1",
        ),
        (
            Told(
                ": some.UncheckedSQLException: Failed to connect: db\n\tat some.SparkCatalog.initialize\n"
                "Caused by: java.net.ConnectException: db.inside refused\n\tat java.net\n\t... 9 more"
            ),
            SinkUnavailable,
            r"failed: java.net.ConnectException \(its words are in the log of the worker\)$",
        ),
    ],
)
def test_errors_of_spark_are_told_in_a_sentence(
    queries: JobQueries, lasting: FakeLasting, error: Exception, expected: type[Exception], words: str
) -> None:
    with pytest.raises(expected, match=words) as told:
        queries.work(CATALOG, {}, raising(error), "merging")
    assert "some." not in shown_trace(told.value), "the status has no words of Java's libraries"
    queries.work(CATALOG, {}, nothing, "merging")
    assert len(lasting.session.beside) == 2, "a session that failed is not used again"


def test_an_error_of_a_session_that_is_gone_is_an_outage_and_others_are_bugs(
    queries: JobQueries, lasting: FakeLasting
) -> None:
    with pytest.raises(KeyError):
        queries.work(CATALOG, {}, raising(KeyError("x")), "merging")
    lasting.lost = True
    with pytest.raises(SinkUnavailable):
        queries.work(CATALOG, {}, raising(KeyError("x")), "merging")


def test_a_batch_that_is_given_up_ends_its_queries(
    queries: JobQueries, lasting: FakeLasting, cancelled: threading.Event
) -> None:
    def work(query: Query) -> None:
        cancelled.set()
        queries.cancel()
        raise PySparkException("cancelled by a tag")

    with pytest.raises(Cancelled):
        queries.work(CATALOG, {}, work, "merging")
    assert lasting.session.beside[0].interrupted == ["job-query"]
    with pytest.raises(Cancelled):
        queries.work(CATALOG, {}, nothing, "merging")
