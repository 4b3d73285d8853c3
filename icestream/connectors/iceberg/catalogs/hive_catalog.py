"""PyIceberg's Hive catalog with our guards, time limits, and the compare-and-set that newer metastores know.

Opened by `guarded_catalogs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import DataOperationType, EnvironmentContext, LockRequest
from pyiceberg.catalog.hive import HiveCatalog, _HiveClient
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TTransport

from icestream.connectors.iceberg.catalogs.keys import storage_properties
from icestream.connectors.iceberg.catalogs.lent_login import LentLogin

_SECONDS: Final = 60


class GuardedHiveCatalog(LentLogin, HiveCatalog):
    """PyIceberg takes the first address only; `uri` may have several, and each new connection tries them."""

    @staticmethod
    def _create_hive_client(properties: Mapping[str, str]) -> _HiveClient:
        addresses = [one.strip() for one in properties["uri"].split(",") if one.strip()]
        return _Client(addresses, properties.get("ugi"))

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)


class _Client(_HiveClient):
    def __init__(self, addresses: list[str], ugi: str | None) -> None:
        self._addresses = addresses
        super().__init__(addresses[0], ugi)

    def __enter__(self) -> Client:
        for place, address in enumerate(self._addresses, 1):
            self._uri = address
            self._transport = self._init_thrift_transport()
            try:
                self._transport.open()
                break
            except TTransport.TTransportException:
                if place == len(self._addresses):
                    raise
        return self._client()

    def _init_thrift_transport(self) -> Any:
        parts = urlsplit(self._uri)
        socket = TSocket.TSocket(parts.hostname, parts.port or 9083)
        socket.setTimeout(_SECONDS * 1000)
        return TTransport.TBufferedTransport(socket)

    def _client(self) -> Client:
        client = _CheckingClient(TBinaryProtocol.TBinaryProtocol(self._transport))
        if self._ugi:
            client.set_ugi(*self._ugi)
        return client


class _CheckingClient(Client):  # type: ignore[misc]
    """A lock that ran out while the metadata was written protects nothing. So the metastore compares, too, as
    far as it knows how (Hive 2.3.10 and 4)."""

    def lock(self, rqst: LockRequest) -> Any:
        for component in rqst.component:
            # PyIceberg leaves it open, at which a metastore wonders whether it is part of a transaction.
            component.operationType = DataOperationType.NO_TXN
        return super().lock(rqst)

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: EnvironmentContext
    ) -> None:
        if before := (new_tbl.parameters or {}).get("previous_metadata_location"):
            environment_context.properties |= {
                "expected_parameter_key": "metadata_location",
                "expected_parameter_value": before,
            }
        super().alter_table_with_environment_context(dbname, tbl_name, new_tbl, environment_context)
