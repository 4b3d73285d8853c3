"""The settings that say how the database is reached: the same keys in the sink and in the source. Part of the
tables of keys of both, `sink/keys` and `source/keys`; `connections` reads them."""

from __future__ import annotations

from typing import Final

from icestream.api.config import ConfigDef, Setting, Type

_DEFAULT_CREDENTIALS: Final = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"


def _default_provider(value: str) -> str | None:
    if not value or value.endswith(".DefaultJdbcCredentialsProvider"):
        return None
    return "classes of Java are not loaded; remove it, and give connection.user and connection.password"


CONNECTION: Final = ConfigDef(
    (
        Setting(
            "connection.url",
            Type.STRING,
            "",
            "The address of the database: jdbc:postgresql://host/db, "
            "jdbc:mysql://host/db, jdbc:mariadb://host/db or jdbc:sqlite:path.",
            importance="HIGH",
        ),
        Setting("connection.user", Type.STRING, None, "The user to log in with.", importance="HIGH"),
        Setting("connection.password", Type.PASSWORD, None, "The user's password.", importance="HIGH"),
        Setting(
            "connection.attempts",
            Type.INT,
            3,
            "How often a connection is tried.",
            at_least=1,
            importance="LOW",
        ),
        Setting(
            "connection.backoff.ms",
            Type.LONG,
            10_000,
            "The wait between two tries.",
            at_least=0,
            importance="LOW",
        ),
        Setting(
            "dialect.name",
            Type.STRING,
            "",
            "The dialect: by default that of the address; "
            "PostgreSqlDatabaseDialect, MySqlDatabaseDialect or SqliteDatabaseDialect.",
            importance="LOW",
        ),
        Setting(
            "jdbc.credentials.provider.class",
            Type.CLASS,
            _DEFAULT_CREDENTIALS,
            "Who gives the login: only the default, which is connection.user and connection.password.",
            check=_default_provider,
            importance="LOW",
        ),
    ),
    prefixes=("connection.",),
)
