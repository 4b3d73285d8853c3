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
    is_rare: bool = False
    """It depends on how far a connector came before it was stopped: a run may do without it."""


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


def _any_body(request: Request, theirs: Answer, ours: Answer) -> bool:
    return theirs.status == ours.status


def _ours_is(status: int) -> Rule:
    return lambda request, theirs, ours: ours.status == status


def _is_ours_readable(request: Request, theirs: Answer, ours: Answer) -> bool:
    return theirs.status == 400 and not _is_error(theirs) and ours.status in (200, 204, 404)


def _same_shape_of_loggers(request: Request, theirs: Answer, ours: Answer) -> bool:
    shapes = [{tuple(level) for level in answer.body.values()} for answer in (theirs, ours)]
    return theirs.status == ours.status == 200 and shapes[0] == shapes[1]


def _tasks_come_later(request: Request, theirs: Answer, ours: Answer) -> bool:
    if request.path.endswith("/tasks"):
        return theirs.status == ours.status == 200 and theirs.body == []
    is_later = isinstance(theirs.body, dict) and theirs.body.get("tasks") == []
    return is_later and _without("tasks")(request, theirs, ours)


def _definitions_of_overrides(request: Request, theirs: Answer, ours: Answer) -> bool:
    def dropped(answer: Answer) -> Any:
        configs = answer.body["configs"]
        return [one["value"] if ".override." in one["value"]["name"] else one for one in configs]

    return theirs.status == ours.status == 200 and dropped(theirs) == dropped(ours)


def _tells_more(request: Request, theirs: Answer, ours: Answer) -> bool:
    if _is_error(theirs):
        return "NullPointerException" in theirs.body["message"] and ours.status == 200
    is_same = theirs.status == ours.status and theirs.body["error_count"] == ours.body["error_count"]
    errors = [
        {one["value"]["name"]: one["value"]["errors"] for one in it.body["configs"]} for it in (theirs, ours)
    ]
    return is_same and errors[0].items() <= errors[1].items()


def _tells_more_errors(request: Request, theirs: Answer, ours: Answer) -> bool:
    is_more = theirs.status == ours.status and ours.body["error_count"] > theirs.body["error_count"]
    return is_more and _without("errors", "error_count")(request, theirs, ours)


def _is_bad_request(request: Request, theirs: Answer, ours: Answer) -> bool:
    return theirs.status == 500 and ours.status == 400 and _is_error(theirs) and _is_error(ours)


def _has_warnings(request: Request, theirs: Answer, ours: Answer) -> bool:
    is_told = isinstance(ours.body, dict) and "warnings" in ours.body
    return is_told and _without("warnings")(request, theirs, ours)


def _is_over_a_limit(request: Request, theirs: Answer, ours: Answer) -> bool:
    words = ours.body["message"] if _is_error(ours) else ""
    return ours.status in (400, 413) and ("at most" in words or "the most" in words)


def _is_empty_form(request: Request, theirs: Answer, ours: Answer) -> bool:
    is_form = request.headers.get("Content-Type") == "application/x-www-form-urlencoded"
    return is_form and request.body is None and theirs.status == 415


def _is_created_once_here(request: Request, theirs: Answer, ours: Answer) -> bool:
    """Of one connector that is created several times at once."""
    return request.at_once > 1 and theirs.status == (201,) and ours.status == (201, 409)


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
        "A connector has its tasks as soon as it is stored, also if it was created paused; Kafka Connect "
        "gives it tasks when it starts for the first time.",
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
        _ours_is(201),
    ),
    "fragment": Difference(
        "A '#' in a path or query is 400: what comes after it is for browsers. Jetty cuts it off, so that"
        " a guard that does not is bypassed.",
        _ours_is(400),
    ),
    "between-workers": Difference(
        "POST /connectors/{name}/tasks is how the workers of Kafka Connect talk to each other; ours do not.",
        _at("/connectors/[^/]+/tasks", lambda request, theirs, ours: ours.status in (200, 405)),
    ),
    "own-loggers": Difference(
        "The loggers of this process are Python's; Java's names work, and stand for those that do the same.",
        _any_body,
    ),
    "loggers": Difference(
        "The loggers of this process are Python's.",
        _at("/admin/loggers/?", _same_shape_of_loggers),
        is_everywhere=True,
    ),
    "warnings": Difference(
        "A key that has no effect is named in the report; Kafka Connect ignores it in silence.",
        _has_warnings,
        is_everywhere=True,
    ),
    "own-opinion": Difference(
        "What a converter or transform itself says of its settings, and a predicate that there is not, are "
        "errors of the config; Kafka Connect takes it, and the task fails.",
        _tells_more_errors,
    ),
    "abstract-class": Difference(
        "A class that needs $Key or $Value is not known without; Kafka Connect fails with 500.", _ours_is(404)
    ),
    "java-classes": Difference(
        "There are no Java classes here, so one that is no converter cannot be found.",
        _without("errors", "value", "default_value", "recommended_values", "visible"),
    ),
    "null-values": Difference(
        "A null is refused for the connector's own keys too; Kafka Connect stores it, and the task fails.",
        _without("errors", "error_count"),
    ),
    "regex-words": Difference(
        "What is wrong with a regular expression is said in Python's words.", _without("errors")
    ),
    "client-definitions": Difference(
        "Overrides of client settings are shown without a definition: librdkafka's client has none.",
        _definitions_of_overrides,
    ),
    "client-errors": Difference(
        "A bad override is an error on its key; Kafka Connect fails with 500.", _ours_is(200)
    ),
    "wrong-version": Difference(
        "With a version that we do not have the other settings are still listed; Kafka Connect leaves them "
        "out the first time, and fails with 500 the next.",
        _tells_more,
    ),
    "bad-offsets": Difference(
        "Offsets that make no sense are 400 and say why; connectors and clients of Kafka Connect let an "
        "exception through, which becomes 500.",
        _at("/connectors/[^/]+/offsets", _is_bad_request),
        is_everywhere=True,
    ),
    "null-offset": Difference(
        "An offset of null is the beginning, which a sink that has committed nothing yet shows as 0; Kafka "
        "Connect forgets the partition.",
        _any_body,
        is_rare=True,
    ),
    "created-twice": Difference(
        "Of requests that create one connector at the same time one succeeds, the others are 409; now and "
        "then Kafka Connect creates it for each of them.",
        _is_created_once_here,
        is_everywhere=True,
        is_rare=True,
    ),
    "empty-form": Difference(
        "No body may be called a form: axios does so, and with it the npm package kafka-connect-client, "
        "which cannot pause a connector of Kafka Connect 4.3.",
        _is_empty_form,
        is_everywhere=True,
    ),
    "metrics": Difference(
        "REST answers /metrics, unless icestream.metrics.rest.enabled=false; Kafka Connect says 404.",
        _at("/metrics", _ours_is(200)),
    ),
    "limits": Difference(
        "Bodies over 5 MiB, names over 4,000 characters and configs over 5,000 keys are refused as such; "
        "Kafka Connect tries, and Kafka refuses the record.",
        _is_over_a_limit,
    ),
}
