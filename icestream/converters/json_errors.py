"""What Java's JsonConverter says of values that it refuses."""

from __future__ import annotations

from typing import Final

from icestream.api.batch import DATA_EXCEPTION
from icestream.records.records import Failure

BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
SCHEMA_BUILDER_EXCEPTION: Final = "org.apache.kafka.connect.errors.SchemaBuilderException"


class Unfit(ValueError):
    """A value or schema that Java's converter refuses, with the words and the class of its exception."""

    def __init__(self, reason: str, exception: str = DATA_EXCEPTION) -> None:
        super().__init__(reason)
        self.exception = exception


def failure_of(error: ValueError) -> Failure:
    return Failure(str(error), error.exception) if isinstance(error, Unfit) else Failure(str(error))


def is_broken(why: Failure) -> bool:
    """Whether the text itself was refused, not what it means."""
    return why.reason.startswith(BROKEN) or why.reason == NO_ENVELOPE
