"""Spark SQL for a sink whose commits read or rewrite what its targets hold, such as an upsert.

The data plane (`pipeline.spark_queries`) has it for jobs whose batches run on Spark; a sink gets it when it
is opened (`SinkPlugin.open_on_spark`), and knows nothing of sessions, tags and outages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    # For their names alone: the vocabulary has no code of others below it.
    import pyarrow as pa

    from icestream.api.connector import SparkCatalog

_T = TypeVar("_T")

ReadPart = Callable[[int], "Iterable[pa.RecordBatch]"]
"""Runs in a Spark task, with the number of the part that it is to read. Picklable."""


class Query(Protocol):
    """A Spark session of one's own, for the time of one piece of work."""

    def run(self, statement: str) -> Sequence[Sequence[Any]]:
        """The rows that a statement answers with, if any."""

    def view(self, name: str, columns: str, parts: int, read: ReadPart) -> None:
        """A view whose rows the tasks of a query read by themselves; `columns` as in CREATE TABLE."""


class SparkQueries(Protocol):
    """Of one job. Whoever gives up the job's batch gives up its queries, too."""

    def work(
        self, catalog: SparkCatalog, settings: Mapping[str, str], work: Callable[[Query], _T], doing: str
    ) -> _T:
        """Do work with a session that has this catalog and these settings, which nobody else uses meanwhile.

        SinkUnavailable: Spark is away, or the query failed and may do better. Cancelled: the batch was given
        up. FatalError: Spark refuses the query, or lacks the catalog's classes. `doing` is for their words.
        """
