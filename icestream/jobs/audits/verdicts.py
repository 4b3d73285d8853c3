"""The verdict of `verify` on each target of a connector, for the command and for the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icestream.api.config import Config
from icestream.api.errors import PreconditionError
from icestream.jobs.audits.audit import findings
from icestream.jobs.audits.audit_facts import gather
from icestream.plugins import find_connector


@dataclass(frozen=True)
class TargetVerdict:
    """What was found of one target."""

    target: str
    line: str
    problems: Sequence[str]
    unknown: Sequence[str]
    """What nobody can tell: no problem, but no proof either."""

    @property
    def holds(self) -> bool:
        return not self.problems


def verdicts(name: str, config: Config, worker: Mapping[str, str], *, deep: bool) -> list[TargetVerdict]:
    """Compare topic, targets and dead letters of a sink; reads only."""
    if find_connector(config.get("connector.class", "")).is_source:
        raise PreconditionError(f"connector '{name}' is a source, which lands nothing; name a sink")
    found = []
    for target, facts in gather(name, config, worker, deep=deep):
        said = findings(facts)
        unknown = [f"not known: {one}" for one in said.unknown]
        if facts.deep and facts.deep.foreign_rows:
            unknown.append(
                f"{facts.deep.foreign_rows:,} rows are in files that another engine wrote: counted only"
            )
        found.append(TargetVerdict(target, said.line, said.problems, unknown))
    return found
