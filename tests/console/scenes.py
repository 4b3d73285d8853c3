"""Workers that are worth looking at, made up: for `make screenshots` and for tests of how the pages look."""

from __future__ import annotations

from dataclasses import replace

from icestream.api.history import Outcome
from icestream.api.status import Progress
from tests.console.world import HOUR, MINUTE, World, partitions

_DELTA = {"connector.class": "io.icestream.delta.DeltaSinkConnector"}
_S3 = {"connector.class": "io.confluent.connect.s3.S3SinkConnector"}


def busy_worker(world: World) -> None:
    """Connectors of the kinds that there are; one failed, one waits, one is late, one rejects, two rest."""
    now = world.clock()
    fine = Progress(
        lag=0,
        batches=360,
        last_commit_ms=now - 2_400,
        next_commit_in_ms=4_000,
        interval_ms=10_000,
        valid_through_ms=now - 1_800,
    )
    audit = world.add("iceberg-sink-auditlogs")
    world.live_through("iceberg-sink-auditlogs", "streaming.auditlogs", minutes=46, rate=620, ended=14)
    apilogs = world.add("iceberg-sink-apilogs")
    world.live_through("iceberg-sink-apilogs", "streaming.apilogs", rate=4_160)
    lags = (1_204, 988, 1_410)
    apilogs.advance(
        replace(
            fine,
            lag=sum(lags),
            rows=120_412_083,
            rejected=3,
            batches=3_124,
            partitions=partitions("apilogs", lags, now),
            topics=("apilogs",),
        )
    )
    with world.clock.at(now - 23_000):
        world.batch(
            "iceberg-sink-apilogs",
            outcome=Outcome.UNAVAILABLE,
            note="the catalog does not answer; again in 4 s",
            read=31_212,
        )
    for age, read in ((12_000, 30_310), (5_000, 18_877)):
        with world.clock.at(now - age):
            world.batch("iceberg-sink-apilogs", read=read, lag_after=3_602, table="streaming.apilogs")
    world.batch("iceberg-sink-apilogs", outcome=Outcome.UNDER_WAY, read=19_204, seconds=0.9)
    quiet = (
        ("iceberg-sink-errorlogs", "streaming.errorlogs", 310, 8_120_553, 0),
        ("shop-orders", "shop.orders", 1_240, 24_331_907, 0),
        ("shop-customers", "shop.customers", 44, 1_204_331, 0),
        ("shop-shipments", "shop.shipments", 96, 3_881_020, 0),
        ("payments-ledger", "finance.ledger", 870, 61_733_410, 12),
        ("clickstream-raw", "web.clicks", 2_930, 412_880_143, 0),
        ("sensors-plant-7", "iot.plant_7", 1_510, 98_004_212, 0),
    )
    for name, table, rate, rows, rejected in quiet:
        manager = world.add(name, {"topics": name, "iceberg.tables": table})
        world.live_through(name, table, minutes=10, rate=rate)
        lag = rate // 3
        manager.advance(
            replace(fine, lag=lag, rows=rows, rejected=rejected, topics=(name,), source_end=rows + lag)
        )
    world.batch("payments-ledger", read=9_120, rejected={"VALUE_CONVERTER": 2}, table="finance.ledger")
    world.add("clicks-by-hour", {"topics": "clicks", "iceberg.tables": "web.clicks_by_hour"}).be_away(
        "the warehouse s3://lake-eu/warehouse does not answer (connection timed out after 10 s)"
    )
    world.add("shop-returns", {"topics": "returns", "iceberg.tables": "shop.returns"}).advance(
        replace(
            fine,
            lag=9_120,
            rows=1_904_331,
            last_commit_ms=now - 4 * MINUTE,
            valid_through_ms=now - 4 * MINUTE,
            topics=("returns",),
        )
    )
    world.add("old-billing", {"topics": "billing", "iceberg.tables": "finance.billing"}).advance(
        replace(fine, rows=88_120, last_commit_ms=now - 26 * HOUR, topics=("billing",))
    )
    world.service.pause("old-billing")
    audit.advance(
        replace(
            fine,
            lag=48_201,
            rows=39_997_120,
            rejected=3,
            last_commit_ms=now - 14 * MINUTE,
            valid_through_ms=now - 14 * MINUTE,
            topics=("auditlogs",),
        )
    )
    audit.fail("the catalog http://catalog:8181 refused the login (401); check iceberg.catalog.credential")
