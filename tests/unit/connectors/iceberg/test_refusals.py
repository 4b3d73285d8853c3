"""Whether a catalog, a database or a store is away, or answers and refuses."""

from __future__ import annotations

import botocore.exceptions
import pytest
import requests
import sqlalchemy.exc
from pyiceberg.exceptions import ForbiddenError, OAuthError, ServerError, UnauthorizedError

from icestream.api.errors import SinkRefused, SinkUnavailable, is_destination_outage
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.plugin import IcebergPlugin


def raised(error: Exception) -> SinkUnavailable:
    with pytest.raises(SinkUnavailable) as told, sink_errors("loading db.t"):
        raise error
    return told.value


def aws(status: int, code: str) -> botocore.exceptions.ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return botocore.exceptions.ClientError(answer, "GetTable")


@pytest.mark.parametrize(
    "error",
    [
        UnauthorizedError("401"),
        ForbiddenError("403"),
        OAuthError("invalid_client"),
        sqlalchemy.exc.OperationalError("", {}, Exception('password authentication failed for user "x"')),
        sqlalchemy.exc.ProgrammingError("", {}, Exception("permission denied for table iceberg_tables")),
        aws(403, "AccessDenied"),
        aws(400, "UnrecognizedClientException"),
        OSError("When listing: AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied"),
        OSError("When reading: AWS Error NO_SUCH_BUCKET during HeadBucket operation: no"),
        PermissionError(13, "Permission denied", "/warehouse"),
    ],
    ids=repr,
)
def test_what_is_refused(error: Exception) -> None:
    told = raised(error)
    assert isinstance(told, SinkRefused)
    assert not is_destination_outage(told)


@pytest.mark.parametrize(
    "error",
    [
        ServerError("503"),
        requests.ConnectionError("refused"),
        requests.ReadTimeout("timed out"),
        sqlalchemy.exc.OperationalError("", {}, Exception("could not connect to server")),
        aws(503, "SlowDown"),
        OSError("AWS Error NETWORK_CONNECTION during PutObject operation: curlCode 28"),
        OSError(28, "No space left on device"),
    ],
    ids=repr,
)
def test_what_is_away(error: Exception) -> None:
    told = raised(error)
    assert not isinstance(told, SinkRefused)
    assert is_destination_outage(told)


@pytest.mark.parametrize(
    ("keys", "destination"),
    [
        ({"type": "rest", "uri": "https://joe:secret@catalog:8181/iceberg"}, "the catalog at catalog:8181"),
        ({"type": "jdbc", "uri": "jdbc:postgresql://db:5432/cat?password=secret"}, "the catalog at db:5432"),
        ({"type": "glue"}, "Glue of AWS"),
    ],
)
def test_connectors_of_one_catalog_have_one_destination(keys: dict[str, str], destination: str) -> None:
    config = {f"iceberg.catalog.{key}": value for key, value in keys.items()}
    assert IcebergPlugin().destination(config) == destination
