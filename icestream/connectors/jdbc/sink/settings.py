"""What a config of the JDBC sink means, in one form for its three products, and what in it does not go
together. Read by the plugins, and by `sink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.connectors.jdbc.connections import Access, access_from
from icestream.connectors.jdbc.dialects.base import OWN_COLUMNS
from icestream.connectors.jdbc.sink.keys import AIVEN, CHECKPOINT_TABLE, CONFLUENT, DEBEZIUM, MOST_TABLES
from icestream.connectors.jdbc.sink.plans import (
    INSERT,
    KAFKA,
    NONE,
    RECORD_HEADER,
    RECORD_KEY,
    UPDATE,
    Keys,
    RowRules,
    Zones,
)
from icestream.connectors.jdbc.sink.table_names import TableNames, name_problem
from icestream.rows.new_columns import GrowthLimit


def warnings(config: Config, without_effect: Mapping[str, str]) -> list[str]:
    return [
        f"'{key}' has no effect: {why}"
        for key in config
        for known, why in without_effect.items()
        if key == known or (known.endswith(".") and key.startswith(known))
    ]


@dataclass(frozen=True)
class SinkSettings:
    """What a config means, in whoever's words."""

    access: Access
    names: TableNames
    rules: RowRules
    checkpoints: str
    creates: bool
    growth: GrowthLimit | None
    limit: GrowthLimit
    types: tuple[str, ...]
    most_tables: int
    most_retries: int
    retry_seconds: float
    commit_seconds: float
    keys: Mapping[str, str] = field(default_factory=dict)
    """Names of keys in this config, for messages."""


def of_confluent(config: Config) -> SinkSettings:
    own = CONFLUENT.parse(config)
    zone = own["db.timezone"]
    unit = "us" if own["timestamp.precision.mode"].upper() == "MICROSECONDS" else "ns"
    rules = RowRules(
        Keys(own["pk.mode"].lower(), tuple(own["pk.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(own["fields.whitelist"]),
        zones=Zones(zone, zone if own["date.timezone"].upper() == "DB_TIMEZONE" else "UTC"),
        moments=dict.fromkeys(own["timestamp.fields.list"], unit),
        defaults=own["replace.null.with.default"],
        text_column=own["string.output.value.column.name"],
    )
    types = tuple(one.upper().replace("_", " ") for one in own["table.types"])
    return _settings(config, own, rules, TableNames(own["table.name.format"]), types)


def of_aiven(config: Config) -> SinkSettings:
    own = AIVEN.parse(config)
    zone = own["db.timezone"]
    rules = RowRules(
        Keys(own["pk.mode"].lower(), tuple(own["pk.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(own["fields.whitelist"]),
        zones=Zones(zone, zone),
    )
    tables = dict(one.split(":", 1) for one in own["topics.to.tables.mapping"] if ":" in one)
    names = TableNames(own["table.name.format"], tables, own["table.name.normalize"])
    quotes = "ALWAYS" if own["sql.quote.identifiers"] else "NEVER"
    return _settings({**config, "quote.sql.identifiers": quotes}, own, rules, names, ("TABLE",))


def of_debezium(config: Config) -> SinkSettings:
    own = DEBEZIUM.parse(config)
    rules = RowRules(
        Keys(own["primary.key.mode"].lower(), tuple(own["primary.key.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(one.rpartition(":")[2] for one in own["field.include.list"]),
        tuple(one.rpartition(":")[2] for one in own["field.exclude.list"]),
        zones=Zones(own["use.time.zone"], "UTC"),
    )
    names = TableNames(own["table.name.format"] or own["collection.name.format"], normalizes=True)
    grows = own["schema.evolution"].lower() == "basic"
    meant = {
        **own,
        "auto.create": grows,
        "auto.evolve": grows,
        "max.retries": own["flush.max.retries"],
        "retry.backoff.ms": own["flush.retry.delay.ms"],
    }
    return _settings(config, meant, rules, names, ("TABLE", "PARTITIONED TABLE"))


def _settings(
    config: Config, own: Mapping[str, Any], rules: RowRules, names: TableNames, types: tuple[str, ...]
) -> SinkSettings:
    access = access_from(config)
    limit = replace(
        GrowthLimit.from_config(config, frozenset(OWN_COLUMNS)),
        any_case=1 if access.dialect.ignores_case else 0,
        longest_column=access.dialect.longest_name,
    )
    return SinkSettings(
        access,
        names,
        rules,
        own[CHECKPOINT_TABLE.name],
        own["auto.create"],
        limit if own["auto.evolve"] else None,
        limit,
        types,
        own[MOST_TABLES],
        own["max.retries"],
        own["retry.backoff.ms"] / 1000,
        own["icestream.jdbc.commit.interval.ms"] / 1000,
    )


def problems(settings: SinkSettings, mode_key: str, fields_key: str) -> list[Problem]:
    """What does not go together. `mode_key` and `fields_key` are the names of these keys in the config."""
    rules = settings.rules
    found = []
    if rules.deletes and rules.keys.mode != RECORD_KEY:
        found.append(
            Problem(
                "delete.enabled", f"delete.enabled=true needs {mode_key}=record_key; set it, or remove this."
            )
        )
    if rules.mode != INSERT and rules.keys.mode == NONE:
        found.append(
            Problem(
                mode_key,
                f"insert.mode={rules.mode} needs a primary key: set {mode_key} to where it is from, such as "
                f"record_key or record_value.",
            )
        )
    if rules.keys.mode == KAFKA and len(rules.keys.fields) not in (0, 3):
        found.append(
            Problem(
                fields_key,
                f"{mode_key}=kafka has three columns, for topic, partition and offset: name three "
                f"in {fields_key}, or none.",
            )
        )
    if settings.names.is_fixed and (why := name_problem(settings.names.format)):
        found.append(Problem("table.name.format", f"table.name.format: {why}."))
    if rules.mode == UPDATE and not rules.keys.fields and rules.keys.mode == RECORD_HEADER:
        found.append(Problem(fields_key, f"{mode_key}=record_header needs {fields_key}: name the headers."))
    return found
