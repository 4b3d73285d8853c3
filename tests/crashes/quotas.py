"""Sets the quota of a producer, by a request of Kafka's protocol: no client of ours can ask for it."""

from __future__ import annotations

import socket
import struct

_ALTER_CLIENT_QUOTAS = 49


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def limit_producer(bootstrap: str, client_id: str, bytes_a_second: float) -> None:
    """From now on the brokers take so much of the producers with this client id."""
    entity = struct.pack(">i", 1) + _text("client-id") + _text(client_id)
    change = struct.pack(">i", 1) + _text("producer_byte_rate") + struct.pack(">d?", bytes_a_second, False)
    body = struct.pack(">i", 1) + entity + change + struct.pack(">?", False)
    request = struct.pack(">hhi", _ALTER_CLIENT_QUOTAS, 0, 1) + _text("tests") + body
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=30) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    # After correlation id, throttle time and the number of entries.
    (error,) = struct.unpack(">h", answer[12:14])
    assert error == 0, f"Kafka's error {error}"
