"""The registry of a worker: answers a scrape by what its parts make of the facts of that moment.

A part is a function from facts to families; parts of others, such as the names that dashboards of Kafka
Connect ask for, are added with `add`. Made by the command of the worker; `exposition.py` writes the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import CollectorRegistry

from icestream.metrics import catalog
from icestream.metrics.facts import Facts, WorkerFacts
from icestream.metrics.families import add, family_of
from icestream.metrics.job_families import job_families
from icestream.metrics.worker_families import worker_families

_LOG = logging.getLogger(__name__)
Families = Callable[[WorkerFacts], Iterable[Family]]
OURS: Final[tuple[Families, ...]] = (worker_families, job_families)


class WorkerCollector:
    """A collector of prometheus_client. A part that fails is left out of the answer, and counted."""

    def __init__(self, facts: Facts, parts: Iterable[Families] = OURS) -> None:
        self._facts = facts
        self._parts = list(parts)
        self._errors = 0
        self.registry = CollectorRegistry(support_collectors_without_names=True)
        """Has nothing but this: no metrics of the process that prometheus_client counts by itself."""
        self.registry.register(self)

    def add(self, part: Families) -> None:
        """For whoever sets the worker up, before it answers."""
        self._parts.append(part)

    def describe(self) -> list[Family]:
        """Nothing: it would be collected at the registration otherwise."""
        return []

    def collect(self) -> Iterator[Family]:
        facts = self._facts()
        for part in self._parts:
            yield from self._of(part, facts)
        errors = family_of(catalog.SCRAPE_ERRORS)
        add(errors, catalog.SCRAPE_ERRORS, {}, self._errors)
        yield errors

    def _of(self, part: Families, facts: WorkerFacts) -> list[Family]:
        try:
            return list(part(facts))
        except Exception:  # a scrape's edge: the other parts are still told
            self._errors += 1
            _LOG.exception("a part of the metrics could not be told")
            return []
