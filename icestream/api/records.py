"""What is common to all Arrow records of ours: types that Arrow alone does not tell, and names of system
keys."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ORIGINS_KEY: Final = b"icestream.origins"
"""Key of the Parquet footer that tells which source offsets the rows of a file are from."""


def is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)
