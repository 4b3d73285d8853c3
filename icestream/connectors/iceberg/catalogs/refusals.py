"""Whether a catalog, a database or an object store is away, or answers and refuses: a login, a right, a name
that it does not know. To ask again does not help the latter for long. Used by `opening` and by the probes."""

from __future__ import annotations

import re
from typing import Final

AWS_REFUSALS: Final = frozenset(
    {
        *("UnrecognizedClientException", "InvalidSignatureException", "AccessDeniedException"),
        *("InvalidClientTokenId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredTokenException"),
        *("InvalidAccessKeyId", "NoSuchBucket"),
    }
)
_LOGIN_REFUSED: Final = re.compile(
    r"password authentication failed|no password supplied|role \".*\" does not exist|Access denied for user"
    r"|database \".*\" does not exist|Unknown database"
)
_STORE_REFUSED: Final = re.compile(
    r"AWS Error (ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|NO_SUCH_BUCKET)"
)
"""Arrow tells S3's error codes in its text only."""


def is_refusal(error: BaseException) -> bool:
    import requests
    import sqlalchemy.exc
    from pyiceberg.exceptions import ForbiddenError, OAuthError, UnauthorizedError

    if isinstance(error, ForbiddenError | OAuthError | UnauthorizedError | PermissionError):
        return True
    if isinstance(error, sqlalchemy.exc.SQLAlchemyError):
        return is_login_refused(error) or isinstance(error, sqlalchemy.exc.ProgrammingError)
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return bool(_STORE_REFUSED.search(str(error)))
    return is_refusal_of_aws(error)


def is_login_refused(error: BaseException | None) -> bool:
    """Of a database, which tells so in its text only."""
    import sqlalchemy.exc

    return isinstance(error, sqlalchemy.exc.SQLAlchemyError) and bool(_LOGIN_REFUSED.search(str(error)))


def is_refusal_of_aws(error: BaseException | None) -> bool:
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return False
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in (401, 403) or answer.get("Error", {}).get("Code") in AWS_REFUSALS
