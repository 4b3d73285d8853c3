"""Which rows: positions and flags, as arrays."""

from __future__ import annotations

import numpy as np

Indexes = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
