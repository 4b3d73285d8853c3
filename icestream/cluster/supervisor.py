"""Watches the jobs of this worker: tells the board how they are, and starts failed ones again if asked to.

`turn` is one look, four times a second, in a thread of the worker.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Final

from icestream.api.status import JobStatus, Progress, State, Waiting
from icestream.cluster.boards import StatusBoard
from icestream.cluster.internal_records import PublishedStatus
from icestream.cluster.membership import Membership
from icestream.cluster.restarts import NO_RECOVERY, Policy, Recovery, next_step
from icestream.cluster.roster import KnownConnector, Roster
from icestream.logs import for_connector

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.25
_FULL_LOOK: Final = 12
"""Every so many turns all jobs are looked at, also those that say the same as before: others write to the
board too. With a thousand jobs the full look at each would take a tenth of a core."""
_PROGRESS_SECONDS: Final = 30.0
"""How old the progress that other workers see may be."""


_AFTER_A_FENCE: Final = Policy(is_on=True, attempts=1_000, delay=0.5, longest_delay=30.0)


class Supervisor:
    def __init__(
        self,
        worker_id: str,
        roster: Roster,
        board: StatusBoard,
        membership: Membership,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        *,
        tracks_topics: bool = True,
    ) -> None:
        self._worker_id = worker_id
        self._roster = roster
        self._board = board
        self._membership = membership
        self._clock = clock
        self._wall = wall
        self._tracks_topics = tracks_topics
        self._recoveries: dict[str, Recovery] = {}
        self._published: dict[str, list[PublishedStatus]] = {}
        self._progress_at: dict[str, float] = {}
        self._batches: dict[str, int] = {}
        self._fenced: set[str] = set()
        self._turns = 0
        self._seen: dict[str, tuple[KnownConnector, JobStatus]] = {}
        self._waits: dict[str, dt.datetime] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """After the jobs have ended: nobody runs our connectors until others take them."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for statuses in self._published.values():
            for status in statuses:
                if status.state is not State.STOPPED:
                    self._board.publish(replace(status, state=State.UNASSIGNED, trace=None, progress=None))

    def turn(self) -> None:
        self._turns += 1
        connectors = self._roster.connectors()
        for name, connector in connectors.items():
            if self._membership.owns(name):
                self._look_at(name, connector)
        for name in [name for name in self._published if name not in connectors]:
            self._forget(name)
        for name in [name for name in self._published if not self._membership.owns(name)]:
            self._leave(name)

    # How

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_SECONDS):
            try:
                self.turn()
            except Exception:  # the supervisor's edge: one failed look must not end all looks
                _LOG.exception("a look at the jobs failed")

    def _look_at(self, name: str, connector: KnownConnector) -> None:
        try:
            job = self._roster.job_status(name)
            if self._has_seen(name, connector, job):
                return
            self._seen[name] = (connector, job)
            self._restart(name, connector, job)
            self._publish(name, connector, job)
            self._note_topics(name, job.progress)
            self._tell_of_wait(name, job.waiting)
        except Exception:  # a job's edge: one that cannot be looked at must not hide the others
            for_connector(_LOG, name).exception("a look at the job failed")

    def _has_seen(self, name: str, connector: KnownConnector, job: JobStatus) -> bool:
        if self._turns % _FULL_LOOK == 0 or self._recoveries.get(name, NO_RECOVERY) is not NO_RECOVERY:
            return False
        before = self._seen.get(name)
        return before is not None and before[0] is connector and before[1] is job

    def _restart(self, name: str, connector: KnownConnector, job: JobStatus) -> None:
        if connector.refused is not None:
            return
        policy = self._policy(name, connector, job)
        before = self._recoveries.get(name, NO_RECOVERY)
        now = self._clock()
        recovery, is_due = next_step(policy, before, job, now)
        self._recoveries[name] = recovery
        if recovery is NO_RECOVERY:
            self._fenced.discard(name)
        if recovery.due is not None and before.due is None:
            at = (self._wall() + dt.timedelta(seconds=recovery.due - now)).isoformat(timespec="seconds")
            note = f"restart {recovery.attempt} of {policy.attempts} at {at}"
            for_connector(_LOG, name).warning("failed; %s", note)
            self._roster.note(name, note)
        elif recovery is NO_RECOVERY and before is not NO_RECOVERY:
            self._roster.note(name, "")
        if is_due:
            self._roster.note(name, f"restart {recovery.attempt} of {policy.attempts} is under way")
            self._roster.run_again(name)

    def _policy(self, name: str, connector: KnownConnector, job: JobStatus) -> Policy:
        if job.is_fenced and self._membership.is_shared:
            # A worker that had it before opened its job late. The group says that it is ours: try again.
            self._fenced.add(name)
        elif job.state is State.FAILED:
            self._fenced.discard(name)
        # Until it has recovered, or those who fence each other would never wait longer.
        return _AFTER_A_FENCE if name in self._fenced else connector.restarts

    def _publish(self, name: str, connector: KnownConnector, job: JobStatus) -> None:
        version = connector.plugin.version if connector.plugin else None
        generation = self._membership.generation
        plain = PublishedStatus(name, None, job.state, self._worker_id, generation, version, job.trace)
        tasks = [replace(plain, task=task) for task in connector.task_ids]
        shown = {status.task: status for status in self._board.statuses(name)}
        # What a former owner said last may arrive after what we said.
        is_ours = all(
            one.task in shown and shown[one.task].worker_id == self._worker_id for one in (plain, *tasks)
        )
        before = self._published.get(name, []) if is_ours else []
        told = [replace(status, progress=None) for status in before]
        now = self._clock()
        is_same = told == [plain, *tasks]
        if is_same and now - self._progress_at.get(name, 0.0) < _PROGRESS_SECONDS:
            return
        own = replace(plain, progress=_shown(job.progress))
        if not before or before[0] != own:
            self._board.publish(own)
        for status in tasks if not is_same else ():
            self._board.publish(status)
        for task in shown.keys() - {None, *connector.task_ids}:
            self._board.forget(name, task)
        self._published[name] = [own, *tasks]
        self._progress_at[name] = now

    def _note_topics(self, name: str, progress: Progress) -> None:
        # Only after a new batch: a topic that was reset is in use again when a record comes.
        if not self._tracks_topics or self._batches.get(name) == progress.batches:
            return
        self._batches[name] = progress.batches
        known = self._board.topics(name)
        for topic in progress.topics:
            if topic not in known:
                self._board.use_topic(name, topic)

    def _tell_of_wait(self, name: str, waiting: Waiting | None) -> None:
        """Once per wait: the job itself cannot say that a call does not return."""
        if waiting is None:
            self._waits.pop(name, None)
        elif self._waits.get(name) != waiting.since:
            self._waits[name] = waiting.since
            for_connector(_LOG, name).warning("still %s", waiting)

    def _leave(self, name: str) -> None:
        """Another worker has it now, and tells."""
        kept_by_name = (
            self._published,
            self._recoveries,
            self._progress_at,
            self._batches,
            self._seen,
            self._waits,
        )
        for kept in kept_by_name:
            kept.pop(name, None)
        self._fenced.discard(name)

    def _forget(self, name: str) -> None:
        """It was deleted."""
        for status in self._published[name]:
            self._board.forget(name, status.task)
        self._board.reset_topics(name)
        self._leave(name)


def _shown(progress: Progress) -> dict[str, object]:
    """Without what changes by the mere passing of time."""
    return {**asdict(progress), "next_commit_in_ms": None}
