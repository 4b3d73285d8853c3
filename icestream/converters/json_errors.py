"""What Java's JsonConverter says of values that it refuses."""

from __future__ import annotations

from typing import Final

BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
