"""The server side of the web console: everything under `/console/`. `rest/server.py` puts it beside REST.

* `site.py` makes Starlette's routes: the page, its files (`assets.py`), and the API under `/console/api/`.
* `access.py` decides who may ask: our header, origin, host, and the level that each route needs.
* `routes.py` is the table of the API. `exchange.py` is what its handlers see.
* Shapes of all answers: docs/console-api.md.

To add a route of the API, write a handler `(console: Console, asked: Asked) -> Answer` in a module of its
own, give that module a table

    ROUTES: Final[Table] = {
        ("GET", "letters"): Route(groups, Level.VIEW, waits_long=True),
        ("POST", "letters/replay"): Route(replay, Level.OPERATE, waits_long=True),
    }

and add the table to `TABLE` in `routes.py`. Paths have one or two segments after `/console/api/`, and never a
name: `asked.connector` is the query parameter `connector`, checked. `rest(handler)` makes a handler of one of
Kafka Connect's, whose path has only `{connector}`. Handlers run in threads; exceptions become answers as in
`rest/errors.py`; `asked.level`, `asked.user` and `asked.header` say who asks and how. `waits_long` is for
what asks other systems: such requests have threads of their own. `at_owner` is for what only the worker knows
that runs the connector: the request goes there.
"""
