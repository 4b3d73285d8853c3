"""JSON payloads as text: what can be told of them without decoding, at memory speed.

Counting quotation marks tells two things. A payload with an odd number of them would swallow the next one
when payloads are decoded as one text. And a text that has more of them than its decoded rows account for
holds keys that were not decoded: inferring every record to find new fields would cost more than decoding it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.payloads import Payloads
from icestream.records.rows import Flags, Indexes

_WHITE = np.frombuffer(b" \t\r\n", np.uint8)
_COLON, _SPACE, _OPEN, _CLOSE = (ord(mark) for mark in ": {}")


def not_one_value(payloads: Payloads) -> Flags:
    """Which payloads must not be decoded with others: they may end inside a string or hold no value."""
    starts, ends = payloads.offsets[:-1], payloads.offsets[1:]
    suspicious: Flags = np.equal(starts, ends)
    filled = np.flatnonzero(~suspicious)
    if not len(filled):
        return suspicious
    starts, ends = starts[filled], ends[filled]
    objects = (payloads.codes[starts] == _OPEN) & (payloads.codes[ends - 1] == _CLOSE)
    # Only whether the number is odd matters, and that survives the overflow of a byte.
    odd = np.add.reduceat(payloads.quotes, starts, dtype=np.uint8) % 2 == 1
    suspicious[filled] = ~objects | odd
    suspicious[_with_several_roots(payloads)] = True
    return suspicious


def _with_several_roots(payloads: Payloads) -> Indexes:
    """Payloads in which an object seems to follow another without a comma: they may be several values."""
    text = payloads.codes
    after = np.flatnonzero(text == _CLOSE) + 1
    after = after[after < len(text)]
    if np.isin(text[after], _WHITE).any():
        # Space between the two: look at what comes after it.
        solid = np.flatnonzero(~np.isin(text, _WHITE))
        places = np.searchsorted(solid, after)
        after, places = after[places < len(solid)], places[places < len(solid)]
        follows = solid[places]
    else:
        follows = after
    owners = np.searchsorted(payloads.offsets, after - 1, side="right") - 1
    inside = follows < payloads.offsets[owners + 1]
    return np.unique(owners[inside & (text[follows] == _OPEN)])


_ESCAPE: Final = 6
"""Characters of an escape such as \\ud840."""
_MISREAD_LETTERS: Final = [np.frombuffer(one, np.uint8) for one in (b"u", b"dD", b"89abAB", b"4567cdefCDEF")]
"""What the first letters of such an escape may be."""


def misread(payloads: Payloads) -> Indexes:
    """Payloads with an escaped pair of surrogates that arrow-rs takes for another character: it forgets to
    carry a bit where the first of the pair is \\uD840 to \\uD87F, \\uD8C0 to \\uD8FF and so on."""
    text = payloads.codes
    places = payloads.backslashes[payloads.backslashes + _ESCAPE <= len(text)]
    # Letter by letter: after the first hardly any place is left.
    for at, letters in enumerate(_MISREAD_LETTERS, start=1):
        places = places[np.isin(text[places + at], letters)]
    return np.unique(np.searchsorted(payloads.offsets, places, side="right") - 1)


def keys_agree(payloads: Payloads, rows: pa.Table) -> bool:
    """Whether the decoded rows account for every key of the text; False means only: look closer."""
    surplus = int(np.count_nonzero(payloads.quotes)) - 2 * _marks(rows)
    return surplus == 0 or surplus == 2 * _null_keys(payloads)


def _null_keys(payloads: Payloads) -> int:
    """Keys whose value is null, written with or without a space: as in Kafka Connect they make no column."""
    text = payloads.codes
    colons = np.flatnonzero(text == _COLON)
    colons = colons[(colons > 0) & (colons + 5 < len(text))]
    values = colons + 1 + (text[colons + 1] == _SPACE)
    nulls = colons[text[values] == ord("n")]
    marks = np.flatnonzero(payloads.quotes)
    places = np.searchsorted(marks, nulls - 1)
    # The mark before the colon must end a string: every second one does.
    ends_key = payloads.quotes[nulls - 1] & (places % 2 == 1)
    return int(np.count_nonzero(ends_key))


def _marks(rows: pa.Table) -> int:
    """Pairs of quotation marks that the text of these rows must have: one per key, one per string."""
    return sum(_pairs_in_column(chunk) for column in rows.itercolumns() for chunk in column.chunks)


def _pairs_in_column(column: pa.Array) -> int:
    return _valid(column) + _pairs_in(column)


def _valid(values: pa.Array) -> int:
    return int(len(values) - values.null_count)


def _pairs_in(values: pa.Array) -> int:
    kind = values.type
    if pt.is_string(kind):
        return _valid(values)
    if pt.is_struct(kind):
        return sum(_pairs_in_column(values.field(child)) for child in range(kind.num_fields))
    if pt.is_map(kind):
        low, high = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = values.items.slice(low, high - low)
        return _pairs_in_column(items)
    if pt.is_list(kind):
        return _pairs_in(values.flatten())
    return 0
