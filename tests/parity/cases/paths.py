"""Paths, verbs and query parameters: known, unknown and odd."""

from tests.parity.table import DELETE, GET, PATCH, POST, PUT, SOURCE, Request, Scenario, create, each

# A name that no scenario creates: tasks of Kafka Connect may tell their status once more after a delete.
_PATHS = [
    "/",
    "/health",
    "/connectors",
    "/connectors/nobody",
    "/connectors/nobody/config",
    "/connectors/nobody/status",
    "/connectors/nobody/tasks",
    "/connectors/nobody/tasks/0/status",
    "/connectors/nobody/tasks/0/restart",
    "/connectors/nobody/restart",
    "/connectors/nobody/pause",
    "/connectors/nobody/resume",
    "/connectors/nobody/stop",
    "/connectors/nobody/topics",
    "/connectors/nobody/topics/reset",
    "/connectors/nobody/offsets",
    "/connectors/nobody/tasks-config",
    "/connector-plugins",
    "/connector-plugins/FileStreamSource/config",
    "/connector-plugins/FileStreamSource/config/validate",
    "/admin/loggers",
    "/admin/loggers/root",
]
_UNKNOWN = [
    "/nope",
    "/connectors/nobody/nope",
    "/connectors/nobody/config/x",
    "/connectors/nobody/tasks/0",
    "/connectors/nobody/tasks/0/nope",
    "/connectors/nobody/tasks/x/status",
    "/connectors/nobody/tasks/-1/status",
    "/connectors/nobody/tasks/1.5/status",
    "/connectors/nobody/tasks/99999999999/status",
    "/connectors/nobody/tasks/%30/status",
    "/connectors/nobody/tasks/+0/status",
    "/connectors/nobody/tasks//status",
    "/connectors/cluster",
    "/connectors/cluster/status",
    "/connector-plugins/",
    "/connector-plugins/x",
    "/connector-plugins/x/config",
    "/connector-plugins/x/config/",
    "/admin",
    "/admin/",
    "/admin/loggers/",
    "/admin/nope",
    "/favicon.ico",
    "//",
    "/connectors/",
    "/connectors//",
    "/connectors//config",
    "//connectors",
    "/Connectors",
    "/CONNECTORS/c",
    "/connectors;x=1",
    "/connectors/nobody;x=1",
    "/connectors/.",
    "/connectors/..",
    "/connectors/../connectors",
    "/connectors/./c",
    "/connectors/%2e",
    "/connectors/%2E%2E/connectors",
    "/health/",
    "/health/x",
    "/connectors?",
    "/?x=1",
    "/connectors/a%2Fb",
    "/connectors/a%2fb/status",
    "/connectors/a%5Cb",
    "/connectors/a\\b",
    "/connectors/%",
    "/connectors/%zz",
    "/connectors/%00",
    "/connectors/%0A",
    "/connectors/%7F",
    "/connectors/%FF",
    "/connectors/%C3%A9",
    "/connectors/%E2%82%AC/status",
    "/connectors/a%20b",
    "/connectors/a+b",
    "/connectors/%20",
    "/connectors/a%25b",
    "/connectors/a%3Bb",
    "/connectors/a%3Fb",
    "/connectors/a%23b",
    "/connectors/a:b",
    "/connectors/a@b!$&'()*,=~",
    "/connectors/" + "n" * 3000,
]

# Names that a connector may have, each as JSON has it and as a path has it.
_NAMES = [
    ("c.d", "c.d"),
    ("a b", "a%20b"),
    ("größe", "gr%C3%B6%C3%9Fe"),
    ("日本語", "%E6%97%A5%E6%9C%AC%E8%AA%9E"),
    ("🚀", "%F0%9F%9A%80"),
    ("a+b", "a+b"),
    ("a?b", "a%3Fb"),
    ("a#b", "a%23b"),
    ("a:b@c!$&'()*,=~", "a:b@c!$&'()*,=~"),
    ('q"q', "q%22q"),
    ("[x]", "%5Bx%5D"),
    ("<b>", "%3Cb%3E"),
    ("status", "status"),
    ("..a", "..a"),
    ("a;b", "a%3Bb"),
    ("  blanks  ", "blanks"),
    ("\u00a0nb\u00a0", "%C2%A0nb%C2%A0"),
]

_BAD_NAMES = ["a\nb", "a\tb", "\u0000", "\u007f", "a\u0085b", "\u001f", "\u200b", "\ud7ff"]

_VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def _bodyless(verb: str, path: str) -> Request:
    is_internal = path.endswith("/tasks") and verb in ("POST", "OPTIONS")
    return Request(verb, path, differs="between-workers" if is_internal else "")


SCENARIOS = [
    *each("verb", *(_bodyless(verb, path) for path in _PATHS for verb in _VERBS)),
    *each("other verb", Request("TRACE", "/connectors"), Request("NOPE", "/connectors"), Request("get", "/")),
    *each("path", *(GET(path) for path in _UNKNOWN)),
    *each("own path", GET("/metrics", differs="metrics")),
    *each("fragment", GET("/connectors#x", differs="fragment"), GET("/connectors?x#y", differs="fragment")),
    *each(
        "whole URL",
        GET("http://worker/connectors", headers={"Host": "worker"}),
        GET("http://worker/connectors/c?x=1", headers={"Host": "worker"}),
        GET("http://worker/nope", headers={"Host": "worker"}),
    ),
    *each(
        "path, changing",
        PUT("/connectors/a%2Fb/config", {}),
        DELETE("/connectors/a%2Fb"),
        DELETE("/connectors/"),
        POST("/connectors/c", {}),
        PUT("/connectors/c", {}),
        PUT("/connectors/cluster/pause"),
        POST("/connectors/cluster/restart"),
        POST("/connectors/cluster", {}),
        PATCH("/connectors", {}),
        POST("/", {}),
    ),
    *[
        Scenario(
            f"name {name}",
            (
                create(name),
                GET(f"/connectors/{path}", settles=True),
                GET("/connectors"),
                DELETE(f"/connectors/{path}"),
            ),
        )
        for name, path in _NAMES
    ],
    Scenario(
        "a name that must be encoded",
        (
            create("größe 1"),
            GET("/connectors/gr%C3%B6%C3%9Fe%201/status", settles=True),
            PUT("/connectors/gr%C3%B6%C3%9Fe%201/config", {**SOURCE, "batch.size": "7"}),
            GET("/connectors/gr%C3%B6%C3%9Fe%201/tasks", settles=True),
            PUT("/connectors/gr%C3%B6%C3%9Fe%201/pause"),
            GET("/connectors/gr%C3%B6%C3%9Fe%201/status", settles=True),
            POST("/connectors/gr%C3%B6%C3%9Fe%201/restart"),
            GET("/connectors?expand=info"),
            DELETE("/connectors/gr%C3%B6%C3%9Fe%201"),
        ),
    ),
    *[
        Scenario(
            f"name by PUT {path}",
            (PUT(f"/connectors/{path}/config", SOURCE), GET("/connectors"), DELETE(f"/connectors/{path}")),
        )
        for path in ("c", "%20c%20", "a+b", "%C3%A9", "c%0A", "%20", "n" * 300)
    ],
    Scenario(
        "name with braces",
        (create("{x}", differs="braces"), GET("/connectors"), DELETE("/connectors/%7Bx%7D")),
    ),
    *each("bad name", *(create(name) for name in _BAD_NAMES)),
    Scenario(
        "query parameters",
        (
            create(),
            GET("/connectors/c/status", settles=True),
            GET("/connectors?expand"),
            GET("/connectors?expand="),
            GET("/connectors?expand=x"),
            GET("/connectors?expand=status"),
            GET("/connectors?expand=info"),
            GET("/connectors?expand=status&expand=info"),
            GET("/connectors?expand=info&expand=status&expand=x"),
            GET("/connectors?expand=status,info"),
            GET("/connectors?expand=STATUS"),
            GET("/connectors?expand=info&expand=info"),
            GET("/connectors?EXPAND=info"),
            GET("/connectors?x=y"),
            GET("/connectors?%65xpand=info"),
            GET("/connectors?expand=%69nfo"),
            GET("/connectors?expand=%zz"),
            GET("/connectors?=&&"),
            GET("/connectors?forward=x"),
            POST("/connectors/c/restart?includeTasks"),
            POST("/connectors/c/restart?includeTasks="),
            POST("/connectors/c/restart?includeTasks=x"),
            POST("/connectors/c/restart?includeTasks=1"),
            POST("/connectors/c/restart?onlyFailed=x&includeTasks=x"),
            POST("/connectors/c/restart?includeTasks=false&onlyFailed=false"),
            POST("/connectors/c/restart?forward=x"),
            POST("/connectors/c/restart?forward=false"),
            POST("/connectors/c/restart?forward=true"),
            GET("/connectors/c/status", settles=True),
            PUT("/connectors/c/config?forward=false", SOURCE),
            DELETE("/connectors/c?forward=false"),
        ),
    ),
    *each(
        "cross origin",
        GET("/", headers={"Origin": "http://ui"}),
        GET("/", headers={"Origin": "http://other"}),
        GET("/nope", headers={"Origin": "http://ui"}),
        Request(
            "OPTIONS", "/connectors", headers={"Origin": "http://ui", "Access-Control-Request-Method": "GET"}
        ),
        Request(
            "OPTIONS", "/connectors", headers={"Origin": "http://ui", "Access-Control-Request-Method": "PUT"}
        ),
        Request(
            "OPTIONS", "/connectors", headers={"Origin": "http://no", "Access-Control-Request-Method": "GET"}
        ),
        Request(
            "OPTIONS",
            "/connectors",
            headers={
                "Origin": "http://ui",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type, x-other",
            },
        ),
    ),
]
