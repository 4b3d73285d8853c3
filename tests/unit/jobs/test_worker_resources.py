"""The gate through which jobs start: some at a time, and nobody for ever behind those who hang."""

from __future__ import annotations

import threading

from icestream.jobs.worker_resources import StartGate


def test_so_many_at_a_time() -> None:
    gate, inside, most, lock = StartGate(2), 0, 0, threading.Lock()

    def pass_through() -> None:
        nonlocal inside, most
        with gate:
            with lock:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.01)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=pass_through) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (inside, most) == (0, 2)


def test_nobody_waits_for_ever_behind_one_that_hangs() -> None:
    gate, hung, passed = StartGate(1, seconds=0.01), threading.Event(), threading.Event()

    def hang() -> None:
        with gate:
            hung.wait(60)

    def follow() -> None:
        with gate:
            passed.set()

    threads = [threading.Thread(target=hang, daemon=True)]
    threads[0].start()
    threads.append(threading.Thread(target=follow, daemon=True))
    threads[1].start()
    assert passed.wait(60)
    hung.set()
    for thread in threads:
        thread.join(60)
    with gate:
        pass
