"""The differences that are agreed, each with its reason. `docs/compatibility.md` tells users the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.parity.sending import Answer
from tests.parity.table import Request

Rule = Callable[[Request, Answer, Answer], bool]


@dataclass(frozen=True)
class Difference:
    """Why the answers differ, and how far they may."""

    reason: str
    applies: Rule
    is_everywhere: bool = False
    """Requests need not name it."""


def _only_message_differs(request: Request, theirs: Answer, ours: Answer) -> bool:
    return _is_error(theirs) and _is_error(ours) and _without_message(theirs) == _without_message(ours)


def _words_of(*marks: str) -> Rule:
    """Only the message differs, and theirs is one of those that we do not copy."""

    def applies(request: Request, theirs: Answer, ours: Answer) -> bool:
        return _only_message_differs(request, theirs, ours) and any(
            mark in theirs.body["message"] for mark in marks
        )

    return applies


def _without(*keys: str) -> Rule:
    """Equal but for these keys of the body."""

    def applies(request: Request, theirs: Answer, ours: Answer) -> bool:
        same = (theirs.status, dict(theirs.headers)) == (ours.status, dict(ours.headers))
        return same and _dropped(theirs.body, keys) == _dropped(ours.body, keys)

    return applies


def _dropped(body: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(body, dict):
        return {key: _dropped(value, keys) for key, value in body.items() if key not in keys}
    return [_dropped(item, keys) for item in body] if isinstance(body, list) else body


def _is_html(request: Request, theirs: Answer, ours: Answer) -> bool:
    """Jetty refuses the request before Kafka Connect sees it, with a page for browsers or with nothing."""
    is_page = theirs.status == 400 and not _is_error(theirs)
    return is_page and ours.status == 400 and _is_error(ours)


def _at(pattern: str, rule: Rule) -> Rule:
    """Only for requests whose path matches."""
    return lambda request, theirs, ours: bool(
        re.fullmatch(pattern, request.path.partition("?")[0]) and rule(request, theirs, ours)
    )


def _anything(request: Request, theirs: Answer, ours: Answer) -> bool:
    return True


def _is_ours_readable(request: Request, theirs: Answer, ours: Answer) -> bool:
    return theirs.status == 400 and not _is_error(theirs) and ours.status in (200, 204, 404)


def _same_shape_of_loggers(request: Request, theirs: Answer, ours: Answer) -> bool:
    shapes = [{tuple(level) for level in answer.body.values()} for answer in (theirs, ours)]
    return theirs.status == ours.status == 200 and shapes[0] == shapes[1]


def _tasks_come_later(request: Request, theirs: Answer, ours: Answer) -> bool:
    is_later = isinstance(theirs.body, dict) and theirs.body.get("tasks") == []
    return is_later and _without("tasks")(request, theirs, ours)


def _is_error(answer: Answer) -> bool:
    return isinstance(answer.body, dict) and set(answer.body) == {"error_code", "message"}


def _without_message(answer: Answer) -> tuple[Any, ...]:
    return answer.status, dict(answer.headers), answer.body["error_code"]


ALLOWED: dict[str, Difference] = {
    "jackson": Difference(
        "What is wrong with a body is said in our words: theirs name Java classes and Jackson's switches.",
        _words_of(
            "at [Source: REDACTED",
            "Cannot invoke ",
            "Document nesting depth",
        ),
        is_everywhere=True,
    ),
    "java-names": Difference(
        "Lists of Java objects and names of Java exceptions are not copied into messages.",
        _words_of("PluginDesc{", "BadRequestException: "),
        is_everywhere=True,
    ),
    "jetty": Difference(
        "A path or a media type that HTTP does not allow is 400 on both sides; ours says why, in JSON.",
        _is_html,
        is_everywhere=True,
    ),
    "tasks-at-once": Difference(
        "A connector has its tasks as soon as it exists, as with a standalone worker of Kafka Connect; a "
        "distributed one finds out later, and never for a connector that is created paused.",
        _tasks_come_later,
        is_everywhere=True,
    ),
    "version": Difference(
        "We say who we are: 4.3.1-icestream, and our own version as commit.",
        _at("/", _without("version", "commit")),
        is_everywhere=True,
    ),
    "encoded-names": Difference(
        "Names with a slash, a backslash or a percent sign are taken and can be reached; Jetty lets them be "
        "created, but refuses every path that holds them.",
        _at(r".*%(2[Ff]|5[Cc]|25).*", _is_ours_readable),
        is_everywhere=True,
    ),
    "braces": Difference(
        "Kafka Connect creates a connector with braces in its name, and then fails to say so.",
        _anything,
    ),
    "between-workers": Difference(
        "POST /connectors/{name}/tasks is how the workers of Kafka Connect talk to each other; ours do not.",
        _at("/connectors/[^/]+/tasks", _anything),
    ),
    "own-loggers": Difference(
        "The loggers of this process are Python's; Java's names work, and stand for those that do the same.",
        _anything,
    ),
    "loggers": Difference(
        "The loggers of this process are Python's.",
        _at("/admin/loggers/?", _same_shape_of_loggers),
        is_everywhere=True,
    ),
}
