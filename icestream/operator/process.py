"""The operator as a process: lease, watch, queue, resync and health, from start to SIGTERM. The command
`icestream operator run` calls `run`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icestream.api.errors import IcestreamError
from icestream.operator.api_server import ApiError, ApiServer, server_from
from icestream.operator.dispatcher import Dispatcher
from icestream.operator.health import HealthServer, Vitals
from icestream.operator.keys import Key
from icestream.operator.known_resources import KnownResources
from icestream.operator.lease import Leadership
from icestream.operator.numbers import OperatorNumbers
from icestream.operator.reconcilers import Policy, Reconcilers
from icestream.operator.references import References
from icestream.operator.resync import ServedKinds, resync
from icestream.operator.wakes import Wakes
from icestream.operator.watch import watch
from icestream.operator.work_queue import WorkQueue

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

_LOG = logging.getLogger(__name__)
_HANGS_AFTER: Final = 120.0
_SECRETS_EVERY: Final = 15.0
_RETRY: Final = 2.0


@dataclass(frozen=True)
class LeaseName:
    namespace: str
    name: str
    holder: str


@dataclass(frozen=True)
class Options:
    namespaces: Sequence[str] = ()
    """None: all of the cluster."""
    policy: Policy = field(default_factory=Policy)
    resync_seconds: float = 120.0
    host: str = "0.0.0.0"
    port: int = 8080
    lease: LeaseName | None = None
    parallel: int = 8


def run(config: SingleConfig, options: Options) -> None:
    """Until SIGTERM or SIGINT. Raises if it cannot go on."""
    asyncio.run(_Process(config, options).run())


class _Process:
    def __init__(self, config: SingleConfig, options: Options) -> None:
        self._config, self._options = config, options
        self._server: ApiServer = server_from(config)
        self._known = KnownResources()
        self._numbers = OperatorNumbers()
        self._kinds = ServedKinds()
        self._is_ready = False
        self._stop = asyncio.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        references = References(self._server)

        def wake(key: Key) -> None:
            loop.call_soon_threadsafe(dispatcher.add, key)

        reconcilers = Reconcilers(
            self._server,
            self._known,
            references,
            self._kinds,
            self._options.policy,
            wake,
            self._numbers.wrote,
        )
        is_of_one = len(self._options.namespaces) == 1
        queue: WorkQueue[Key] = WorkQueue(
            self._known.lock_name,
            group_of=lambda key: key.namespace,
            most_of_group=None if is_of_one else max(1, self._options.parallel // 2),
        )
        dispatcher = Dispatcher(queue, reconcilers.turn, self._numbers, self._options.parallel)
        self._numbers.gauge(
            "icestream_operator_queue", "Keys that wait for their turn.", lambda: float(queue.waiting)
        )
        self._numbers.gauge(
            "icestream_operator_running", "Reconciliations under way.", lambda: float(queue.running)
        )
        health = self._health(dispatcher)
        health.start()
        leadership = self._leadership()
        try:
            if leadership is None or await self._lead(leadership):
                await self._work(loop, dispatcher, references)
        finally:
            self._ended.set()
            health.stop()
            # What is still under way would write beside the next operator: that one waits its time then.
            if leadership is not None and dispatcher.is_idle:
                leadership.release()
        if not dispatcher.is_idle:
            _LOG.warning("reconciliations are still under way; the process ends without them")
            _end_at_once()
        if self._failure is not None:
            raise self._failure

    def _health(self, dispatcher: Dispatcher) -> HealthServer:
        def is_alive() -> bool:
            # Before it works there is no pulse; then the loop, not the threads, must never hang.
            return not self._is_ready or dispatcher.age() < _HANGS_AFTER

        vitals = Vitals(is_alive, lambda: self._is_ready, self._numbers.exposition)
        health = HealthServer(self._options.host, self._options.port, vitals)
        _LOG.info("health and metrics are on port %d", health.port)
        return health

    def _leadership(self) -> Leadership | None:
        lease = self._options.lease
        if lease is None:
            return None
        return Leadership(self._server, lease.namespace, lease.name, lease.holder)

    async def _lead(self, leadership: Leadership) -> bool:
        """Wait for the lease, then renew it in a thread of its own: no work may keep it from that."""
        waiting = asyncio.create_task(asyncio.to_thread(leadership.wait_for, self._ended))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if self._stop.is_set():
            self._ended.set()
            await waiting
            return False
        for loop in (leadership.keep, leadership.guard):
            threading.Thread(
                target=loop, args=(self._ended, _lease_lost), name=f"lease-{loop.__name__}", daemon=True
            ).start()
        return True

    async def _work(
        self, loop: asyncio.AbstractEventLoop, dispatcher: Dispatcher, references: References
    ) -> None:
        await self._first_look(dispatcher)
        if self._stop.is_set():
            return

        def wake(key: Key) -> None:
            loop.call_soon_threadsafe(dispatcher.add, key)

        wakes = Wakes(self._known, references, wake)
        watching = threading.Thread(target=self._watch, args=(loop, wakes), name="watch", daemon=True)
        watching.start()
        self._is_ready = True
        _LOG.info("the operator is ready")
        again = asyncio.create_task(self._repeat(self._options.resync_seconds, self._resync, dispatcher))
        secrets = asyncio.create_task(
            self._repeat(_SECRETS_EVERY, lambda: self._look_at_secrets(references), dispatcher)
        )
        await dispatcher.run(self._stop)
        again.cancel()
        secrets.cancel()
        self._ended.set()
        await loop.run_in_executor(None, watching.join, 15.0)

    async def _first_look(self, dispatcher: Dispatcher) -> None:
        """Before anything is done, all clusters are known: which of two is the older one depends on it."""
        while not self._stop.is_set():
            try:
                for key in await asyncio.to_thread(self._resync):
                    dispatcher.add(key)
                return
            except ApiError as error:
                _LOG.warning("%s; tried again in %.0f s", error, _RETRY)
                await asyncio.sleep(_RETRY)

    def _resync(self) -> Mapping[Key, bool]:
        return resync(self._server, self._options.namespaces, self._kinds, self._known)

    def _look_at_secrets(self, references: References) -> Mapping[Key, bool]:
        return dict.fromkeys(references.changed_secrets(), True)

    async def _repeat(
        self, seconds: float, look: Callable[[], Mapping[Key, bool]], dispatcher: Dispatcher
    ) -> None:
        """Keys, and whether they are urgent."""
        while True:
            await asyncio.sleep(seconds)
            try:
                for key, is_urgent in (await asyncio.to_thread(look)).items():
                    dispatcher.add(key, urgent=is_urgent)
            except IcestreamError as error:
                _LOG.warning("%s", error)
            except Exception:  # the edge of a task that nobody waits for: it would end in silence
                _LOG.exception("a look at the API server failed; it is repeated in %.0f s", seconds)

    def _watch(self, loop: asyncio.AbstractEventLoop, wakes: Wakes) -> None:
        """In a loop of its own: kopf ends every task of its loop that it does not know."""
        try:
            asyncio.run(
                watch(self._config, self._options.namespaces, wakes.watched(self._kinds), self._ended)
            )
            if not self._ended.is_set():
                self._failure = IcestreamError("the watch has ended by itself; start the operator again")
        except Exception as error:  # the watch's edge: without it the operator is blind
            self._failure = error
        finally:
            loop.call_soon_threadsafe(self._stop.set)


def _lease_lost() -> None:
    """At once, whatever is under way: another operator may have begun."""
    _LOG.error("the lease is lost; the process ends")
    _end_at_once()


def _end_at_once() -> None:
    """Threads that hang would keep the process; whatever they do can be done again."""
    logging.shutdown()
    os._exit(1)
