"""Loggers: read, set for one worker or for all."""

from tests.parity.table import GET, PUT, Scenario, each

_NAME = "com.example.parity"
_PATH = f"/admin/loggers/{_NAME}"

SCENARIOS = [
    *each(
        "read",
        GET("/admin/loggers/root"),
        GET("/admin/loggers/no.such.logger"),
        GET("/admin/loggers/%20"),
        GET("/admin/loggers/a%2Fb"),
        GET("/admin/loggers/a/b"),
        GET("/admin/loggers?x=y"),
    ),
    *each(
        "refused",
        PUT(_PATH, {}),
        PUT(_PATH, {"level": None}),
        PUT(_PATH, {"level": "nope"}),
        PUT(_PATH, {"level": ""}),
        PUT(_PATH, {"level": " "}),
        PUT(_PATH, {"level": 7}),
        PUT(_PATH, {"level": "nope"}, headers={}),
        PUT(_PATH, {"levels": "INFO"}),
        PUT(f"{_PATH}?scope=cluster", {}),
        PUT(f"{_PATH}?scope=cluster", {"level": "nope"}),
        PUT("/admin/loggers", {"level": "INFO"}),
    ),
    Scenario(
        "set",
        (
            PUT(_PATH, {"level": "DEBUG"}),
            GET(_PATH),
            PUT(_PATH, {"level": "warn"}),
            GET(_PATH),
            PUT(_PATH, {"level": "Error"}),
            GET(_PATH),
            PUT(_PATH, {"level": "TRACE", "more": "x"}),
            GET(_PATH),
            PUT(_PATH, {"level": "FATAL"}),
            GET(_PATH),
            PUT(_PATH, {"level": "OFF"}),
            GET(_PATH),
            PUT(f"{_PATH}?scope=worker", {"level": "INFO"}),
            GET(_PATH),
            PUT(f"{_PATH}?scope=WORKER", {"level": "INFO"}),
            PUT(f"{_PATH}?scope=x", {"level": "INFO"}),
            PUT(f"{_PATH}?scope=", {"level": "INFO"}),
            PUT(f"{_PATH}?scope", {"level": "INFO"}),
        ),
    ),
    Scenario(
        "a namespace and what is below it",
        (
            PUT(f"{_PATH}.x.a", {"level": "INFO"}),
            PUT(f"{_PATH}.x.b", {"level": "INFO"}),
            PUT(f"{_PATH}.xy", {"level": "INFO"}),
            PUT(f"{_PATH}.x", {"level": "WARN"}),
            GET(f"{_PATH}.x.a"),
            GET(f"{_PATH}.xy"),
        ),
    ),
    Scenario(
        "one of Kafka Connect's own",
        (
            PUT(
                "/admin/loggers/org.apache.kafka.connect.runtime.rest",
                {"level": "WARN"},
                differs="own-loggers",
            ),
            GET("/admin/loggers/org.apache.kafka.connect.runtime.rest"),
        ),
    ),
    Scenario(
        "of all workers",
        (
            PUT(f"{_PATH}?scope=cluster", {"level": "WARN"}),
            GET(_PATH, settles=True),
            PUT(f"{_PATH}?scope=Cluster", {"level": "ERROR"}),
            GET(_PATH, settles=True),
        ),
    ),
]
