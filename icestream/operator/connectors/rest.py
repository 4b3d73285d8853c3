"""The REST API of one cluster of workers, for the operator: its failures are told in statuses."""

from __future__ import annotations

from typing import Final

from icestream.client import Advice, ConnectClient

_PATIENCE: Final = 30.0
_ADVICE: Final = Advice(
    no_worker="look at the cluster's pods",
    other_server="check that the service selects workers",
    no_host="look at the cluster's service and pods",
    not_trusted="give the workers another certificate",
    other_user="let the operator in",
    moved="let workers answer at their own address",
    no_path="run workers that have it",
)


def workers_at(url: str) -> ConnectClient:
    return ConnectClient(url, _PATIENCE, advice=_ADVICE)
