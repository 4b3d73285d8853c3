"""Free ports on the loopback address."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Collection
from typing import Final

HOST: Final = "127.0.0.1"
# Below the range that systems hand out to clients: a client that keeps trying to reach a dead server on a
# port of that range can be given this very port, connect to itself and keep the server from coming back.
_FIRST: Final = 20_000
_COUNT: Final = 10_000
_steps: Final = itertools.count()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return not is_listening(port)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def free_port(*, avoid: int | Collection[int] = ()) -> int:
    """A port nobody listens on.

    Each process starts to look at another place, so that two rarely meet, and each call after the port of the
    last one: whoever asked for that may not listen yet.
    """
    # A prime of about the range's size: processes that start together begin far from each other.
    first = os.getpid() * 7919
    avoided = {avoid} if isinstance(avoid, int) else set(avoid)
    candidates = (_FIRST + (first + next(_steps)) % _COUNT for _ in range(_COUNT))
    return next(port for port in candidates if port not in avoided and is_free(port))
