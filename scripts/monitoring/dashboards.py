"""Which panels our two dashboards have. They begin with what whoever is on call asks first.

All that comes after follows from the list of metrics (`icestream.metrics.catalog`): a metric of a connector
has a panel on the page of one connector, every other one on the overview.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icestream.metrics import catalog
from icestream.metrics.catalog import METRICS, Metric, Part
from scripts.monitoring.panels import PACE, Panel, Query, Row, panel_of, quantile, rate

ALL: Final = 'job=~"$job"'
ONE: Final = 'job=~"$job", connector="$connector"'
_OLD_NAMES: Final = (catalog.JVM_USED_OLD, catalog.JVM_MAX_OLD)
"""For dashboards of others: ours has the new ones."""
_GREEN, _AMBER, _RED = "green", "orange", "red"


@dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    about: str
    rows: tuple[Row, ...]
    has_connector: bool = False
    """Whether one of the connectors is chosen."""


def _now(expression: str, legend: str = "") -> tuple[Query, ...]:
    return (Query(expression, legend, is_instant=True),)


def _stat(title: str, expression: str, unit: str = "short", *limits: tuple[float, str]) -> Panel:
    return Panel(title, _now(expression), unit, kind="stat", width=3, height=4, limits=limits)


def _state(name: str) -> str:
    return f'{catalog.STATE.name}{{{ALL}, state="{name}"}}'


def _glance() -> Row:
    return Row(
        "At a glance",
        (
            _stat("Workers", f"count({catalog.INFO.name}{{{ALL}}})"),
            _stat("Connectors that run", f"sum({_state('running')})", "short", (0, _GREEN)),
            _stat("Connectors that failed", f"sum({_state('failed')})", "short", (0, _GREEN), (1, _RED)),
            _stat(
                "Connectors that wait",
                f"sum({catalog.WAITING.name}{{{ALL}}})",
                "short",
                (0, _GREEN),
                (1, _AMBER),
            ),
            _stat("Records written", rate(catalog.WRITTEN, ALL), "cps"),
            _stat("Records rejected", rate(catalog.REJECTED, ALL), "cps", (0, _GREEN), (0.001, _AMBER)),
            _stat("Lag", f"sum({catalog.LAG.name}{{{ALL}}})", "short"),
            _stat(
                "Longest wait",
                f"max({catalog.LAG_SECONDS.name}{{{ALL}}})",
                "s",
                *((0, _GREEN), (300, _AMBER), (900, _RED)),
            ),
        ),
    )


def _connectors() -> Row:
    by = "by (connector)"
    columns = (
        ("State", f"{catalog.STATE.name}{{{ALL}}} == 1", ""),
        ("Lag", f"sum {by} ({catalog.LAG.name}{{{ALL}}})", "short"),
        ("Wait", f"max {by} ({catalog.LAG_SECONDS.name}{{{ALL}}})", "s"),
        ("Written", rate(catalog.WRITTEN, ALL, "connector"), "cps"),
        ("Rejected", rate(catalog.REJECTED, ALL, "connector"), "cps"),
        ("Last commit", f"time() - max {by} ({catalog.LAST_COMMIT.name}{{{ALL}}})", "s"),
    )
    queries = [
        f"max by (connector, state) ({columns[0][1]})",
        *(expression for _, expression, _ in columns[1:]),
    ]
    letters = "ABCDEF"
    table = Panel(
        "Connectors",
        tuple(Query(expression, "", is_instant=True) for expression in queries),
        kind="table",
        width=24,
        height=9,
        about="A click on a connector opens its own page.",
        columns=tuple((letters[at], title, unit) for at, (title, _, unit) in enumerate(columns)),
    )
    return Row("Connectors", (table,))


def _flow() -> Row:
    def each(title: str, expression: str, unit: str) -> Panel:
        return Panel(title, (Query(expression, "{{connector}}"),), unit)

    return Row(
        "Flow",
        (
            each("Records written", rate(catalog.WRITTEN, ALL, "connector"), "cps"),
            each("Lag", f"sum by (connector) ({catalog.LAG.name}{{{ALL}}})", "short"),
            each("Longest wait", f"max by (connector) ({catalog.LAG_SECONDS.name}{{{ALL}}})", "s"),
            each(
                "Freshness when a batch lands, 95 of 100",
                quantile(0.95, catalog.END_TO_END, ALL, ["connector"]),
                "s",
            ),
            each("Commits, 95 of 100", quantile(0.95, catalog.COMMIT_SECONDS, ALL, ["connector"]), "s"),
            each("Records rejected", rate(catalog.REJECTED, ALL, "connector"), "cps"),
            each("Retries", rate(catalog.RETRIES, ALL, "connector"), "cps"),
            each("Bytes of files", rate(catalog.FILE_BYTES, ALL, "connector"), "Bps"),
            Panel(
                "Batches by outcome",
                (
                    Query(
                        f"sum by (outcome) (increase({catalog.BATCHES.name}{{{ALL}}}[{PACE}])) > 0",
                        "{{outcome}}",
                    ),
                ),
                stacked=True,
            ),
        ),
    )


def _books() -> Row:
    books = (
        (catalog.READ, "read"),
        (catalog.WRITTEN, "written"),
        (catalog.REJECTED, "rejected"),
        (catalog.FILTERED, "filtered"),
    )
    stages = Query(
        f"sum by (stage) (rate({catalog.STAGE_SECONDS.name}_sum{{{ONE}}}[{PACE}]))"
        f" / ignoring (stage) group_left sum (rate({catalog.BATCH_SECONDS.name}_count{{{ONE}}}[{PACE}]))",
        "{{stage}}",
    )
    return Row(
        "At a glance",
        (
            Panel(
                "State",
                _now(f"{catalog.STATE.name}{{{ONE}}} == 1", "{{state}}"),
                kind="stat",
                width=3,
                height=7,
            ),
            Panel("Lag", _now(f"sum({catalog.LAG.name}{{{ONE}}})"), kind="stat", width=3, height=7),
            Panel(
                "Last commit",
                _now(f"time() - max({catalog.LAST_COMMIT.name}{{{ONE}}})"),
                "s",
                kind="stat",
                width=3,
                height=7,
            ),
            Panel(
                "The books",
                tuple(Query(rate(metric, ONE), name) for metric, name in books),
                "cps",
                "What is read is written, rejected or filtered.",
                width=7,
            ),
            Panel(
                "A batch by stage",
                (stages,),
                "s",
                "Seconds of an average batch; those inside tasks are summed over tasks.",
                width=8,
                stacked=True,
            ),
        ),
    )


def _rows(chosen: str, *, of_connector: bool) -> tuple[Row, ...]:
    """A row for each part of the list, with a panel for each of its metrics."""
    rows = []
    for part in Part:
        metrics = [one for one in METRICS if one.part is part and one not in _OLD_NAMES]
        mine = [one for one in metrics if ("connector" in one.labels) is of_connector]
        if mine:
            panels = [panel_of(one, chosen, _labels(one, of_connector=of_connector)) for one in mine]
            rows.append(Row(str(part), tuple(panels)))
    return tuple(rows)


def _labels(metric: Metric, *, of_connector: bool) -> list[str]:
    kept = [label for label in metric.labels if label != "connector"]
    return kept if of_connector else ["instance", *kept]


OVERVIEW: Final = Dashboard(
    "icestream-overview",
    "Icestream: overview",
    "All connectors and workers.",
    (_glance(), _connectors(), _flow(), *_rows(ALL, of_connector=False)),
)
CONNECTOR: Final = Dashboard(
    "icestream-connector",
    "Icestream: one connector",
    "All that a connector tells of itself.",
    (_books(), *_rows(ONE, of_connector=True)),
    has_connector=True,
)
DASHBOARDS: Final = (OVERVIEW, CONNECTOR)
