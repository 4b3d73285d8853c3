"""Handlers about dead letters: groups, records, one record whole, replays; and `verify`.

Shapes: docs/console-api.md.

`icestream.console.payloads=false` hides keys, values and headers from everybody, as the level `view` does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from icestream.api.errors import PreconditionError
from icestream.api.nesting import read_json
from icestream.cluster.configs.masking import Masks
from icestream.cluster.settings.console_settings import Level
from icestream.jobs.letters.desk import LetterGroup, LetterPage, ReplayProgress
from icestream.jobs.letters.kinds import kind_of
from icestream.jobs.letters.replay import Request
from icestream.jobs.letters.rows import row_of
from icestream.jobs.letters.where import filter_from
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter
from icestream.rest.console.exchange import Asked, Console, Route, Table
from icestream.rest.errors import BadRequest
from icestream.rest.exchange import Answer

_T = TypeVar("_T")
_MOST_GROUPS: Final = 200
_MOST_ROWS: Final = 100
_PREVIEW: Final = 160
_MOST_SHOWN: Final = 256 * 1024
"""Bytes of a key or a value that the page shows; a download has all of them."""
_HEX_BYTES: Final = 16
_MOST_DUMPED: Final = 16 * 1024
_MOST_HEADERS: Final = 200
_QUOTING: Final = ("exception.message", "exception.stacktrace")
"""Parts of the context that may quote the record."""


def read_groups(console: Console, asked: Asked) -> Answer:
    page = _page(console, asked, _wanted(console, asked, asked.optional("where") or ""))
    groups = page.groups()
    shown = groups[:_MOST_GROUPS]
    body = {**_about(page), "groups": [_group(one) for one in shown], "more_groups": len(groups) - len(shown)}
    return Answer(body=body)


def read_records(console: Console, asked: Asked) -> Answer:
    wanted = _wanted(console, asked, asked.optional("where") or "", asked.optional("group") or None)
    page = _page(console, asked, wanted)
    from_, shows = asked.number("from", 0, most=10**6), _shows_payloads(console, asked)
    rows = [_row(letter, replayed, shows) for letter, replayed in page.letters[from_ : from_ + _MOST_ROWS]]
    return Answer(body={**_about(page), "records": rows, "from": from_, "count": len(page.letters)})


def read_record(console: Console, asked: Asked) -> Answer:
    """One dead letter; `whole` is for downloads, and has the bytes as they are."""
    partition, offset = asked.number("partition", 0, most=10**6), asked.number("offset", 0, most=10**18)
    letter, replayed = console.service.inspection.letter(asked.connector, partition, offset)
    shows = _shows_payloads(console, asked)
    row = _row(letter, replayed, shows)
    del row["key"], row["value"]
    body: dict[str, Any] = {**row, "shows_payloads": shows, "is_whole": letter.is_whole}
    body["context"] = {name: text for name, text in letter.context.items() if shows or name not in _QUOTING}
    if shows:
        as_shown = _whole if asked.flag("whole") else _payload
        headers = [{"name": name, "value": as_shown(value)} for name, value in letter.headers[:_MOST_HEADERS]]
        body |= {"headers": headers, "key": as_shown(letter.key), "value": as_shown(letter.value)}
        body["more_headers"] = max(0, len(letter.headers) - _MOST_HEADERS)
    return Answer(body=body)


def replay(console: Console, asked: Asked) -> Answer:
    """`dry_run` only counts; otherwise it begins, and `GET letters/replay` tells how far it is."""
    document = asked.json_object() or {}
    known = ("dry_run", "where", "group", "to_topic", "skip_unsendable")
    unknown = [key for key in document if key not in known]
    if unknown:
        raise BadRequest(f"'{unknown[0]}' is no part of a replay, which has {', '.join(known)}")
    wanted = _wanted(console, asked, _text(document, "where"), _text(document, "group") or None)
    request = Request(
        wanted, None, _text(document, "to_topic").strip() or None, _flag(document, "skip_unsendable")
    )
    inspection = console.service.inspection
    if not _flag(document, "dry_run", default=True):
        begun = _refusing(lambda: inspection.replay(asked.connector, request))
        return Answer(202, _progress(begun, _masks(console, asked)))
    plan = inspection.replay_plan(asked.connector, request)
    return Answer(
        body={
            "count": plan.found.count,
            "sent_already": plan.found.sent_already,
            "without_origin": plan.found.without_origin,
            "without_value": plan.found.without_value,
            "topics": list(plan.topics),
            "problem": plan.problem and _masks(console, asked).text(plan.problem),
        }
    )


def read_replay(console: Console, asked: Asked) -> Answer:
    progress = console.service.inspection.replay_progress(asked.connector)
    masks = _masks(console, asked)
    return Answer(body={"replay": None if progress is None else _progress(progress, masks)})


def verify(console: Console, asked: Asked) -> Answer:
    """The verdict on each target."""
    deep = asked.flag("deep")
    found = _refusing(lambda: console.service.inspection.verify(asked.connector, deep=deep))
    masks = _masks(console, asked)
    targets = [
        {
            "target": one.target,
            "line": masks.text(one.line),
            "holds": one.holds,
            "problems": [masks.text(problem) for problem in one.problems],
            "unknown": [masks.text(what) for what in one.unknown],
        }
        for one in found
    ]
    return Answer(body={"targets": targets, "holds": all(one.holds for one in found), "deep": deep})


def _masks(console: Console, asked: Asked) -> Masks:
    return console.service.masks(asked.connector)


def _wanted(console: Console, asked: Asked, where: str, group: str | None = None) -> DeadLetterFilter:
    return replace(filter_from(where, group), reads_values=_shows_payloads(console, asked))


def _page(console: Console, asked: Asked, wanted: DeadLetterFilter) -> LetterPage:
    return console.service.inspection.letters(asked.connector, wanted, asked.optional("before"))


def _shows_payloads(console: Console, asked: Asked) -> bool:
    return console.config.console.shows_payloads and asked.level >= Level.OPERATE


def _about(page: LetterPage) -> dict[str, Any]:
    return {
        "queue": page.queue,
        "read": page.read,
        "cursor": page.cursor,
        "has_lost_some": page.has_lost_some,
    }


def _group(group: LetterGroup) -> dict[str, Any]:
    return {
        "id": group.kind.id,
        "stage": group.kind.stage,
        "exception": group.kind.exception,
        "reason": group.kind.reason,
        "count": group.count,
        "replayed": group.replayed,
        "first_ms": group.first_ms,
        "last_ms": group.last_ms,
        "topics": sorted(group.topics),
    }


def _row(letter: DeadLetter, replayed: bool, shows_payloads: bool) -> dict[str, Any]:
    row = row_of(letter, replayed)
    if not shows_payloads:
        row["reason"] = kind_of(letter.context).reason
    for part in ("key", "value"):
        row[part] = row[part][:_PREVIEW] if shows_payloads and row[part] is not None else None
    return {
        **row,
        "offset": None if row["offset"] is None else str(row["offset"]),
        "time_ms": letter.timestamp_ms if letter.timestamp_ms >= 0 else None,
        "group": kind_of(letter.context).id,
        "size": len(letter.value or b""),
        "queue": {"partition": letter.place.number, "offset": str(letter.offset)},
    }


def _payload(content: bytes | None) -> dict[str, Any] | None:
    """As JSON, as text or as bytes, whatever it is; long ones are cut."""
    if content is None:
        return None
    head = content[:_MOST_SHOWN]
    about = {"size": len(content), "is_cut": len(content) > len(head)}
    if (text := _utf8(head, is_cut=about["is_cut"] is True)) is None:
        return {
            **about,
            "kind": "hex",
            "text": _dump(head[:_MOST_DUMPED]),
            "is_cut": len(content) > _MOST_DUMPED,
        }
    return {**about, "kind": "json" if not about["is_cut"] and _is_json(text) else "text", "text": text}


def _whole(content: bytes | None) -> dict[str, Any] | None:
    return None if content is None else {"size": len(content), "base64": base64.b64encode(content).decode()}


def _utf8(content: bytes, *, is_cut: bool) -> str | None:
    """None if it is no text; a cut may go through a character."""
    for less in range(4 if is_cut else 1):
        try:
            text = content[: len(content) - less].decode()
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text
    return None


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return False
    return True


def _dump(content: bytes) -> str:
    lines = []
    for at in range(0, len(content), _HEX_BYTES):
        line = content[at : at + _HEX_BYTES]
        signs = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        lines.append(f"{at:08x}  {binascii.hexlify(line, ' ').decode():<47}  {signs}")
    return "\n".join(lines)


def _progress(progress: ReplayProgress, masks: Masks) -> dict[str, Any]:
    return {
        "total": progress.total,
        "sent": progress.sent,
        "is_over": progress.is_over,
        "problem": progress.problem and masks.text(progress.problem),
    }


def _refusing(call: Callable[[], _T]) -> _T:
    """What cannot be done is the request's fault, not the worker's."""
    try:
        return call()
    except PreconditionError as error:
        raise BadRequest(str(error)) from None


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"'{name}' of a replay is no text")
    return value or ""


def _flag(document: dict[str, Any], name: str, *, default: bool = False) -> bool:
    value = document.get(name, default)
    if not isinstance(value, bool):
        raise BadRequest(f"'{name}' of a replay is neither true nor false")
    return value


ROUTES: Final[Table] = {
    ("GET", "letters"): Route(read_groups, Level.VIEW, waits_long=True),
    ("GET", "letters/records"): Route(read_records, Level.VIEW, waits_long=True),
    ("GET", "letters/record"): Route(read_record, Level.VIEW, waits_long=True),
    ("GET", "letters/replay"): Route(read_replay, Level.OPERATE, at_owner=True),
    ("POST", "letters/replay"): Route(replay, Level.OPERATE, waits_long=True, at_owner=True),
    ("POST", "verify"): Route(verify, Level.OPERATE, waits_long=True),
}
