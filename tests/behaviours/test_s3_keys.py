"""Keys of the S3 sink about the store: what each changes in the requests, seen by a proxy before moto."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from icestream import aws_roles
from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.aws_roles import Keys, Role
from icestream.cluster.configs.allowed_hosts import host_problems
from icestream.connectors.s3.keys import WITHOUT_EFFECT
from icestream.connectors.s3.plugin import S3SinkPlugin
from icestream.connectors.s3.stores.opening import open_store
from icestream.connectors.s3.target import S3Target
from tests.behaviours.test_sinks import bucket_config, s3_subject
from tests.http_proxy import Answer, PassOn, Request, proxy

ROLE = "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider"
BASE = {"format.class": "io.confluent.connect.s3.format.json.JsonFormat", "flush.size": "3"}


@dataclass
class Seen:
    """The requests that reached the store."""

    config: dict[str, str]
    requests: list[Request] = field(default_factory=list)

    def named(self, kind: str) -> list[Request]:
        return [one for one in self.requests if kind in f"{one.verb} {one.target}"]

    def commits(self, **keys: str) -> None:
        subject = s3_subject({**self.config, **keys})
        subject.commit(0, 4, None)
        assert subject.visible() == [0, 1, 2, 3]

    @property
    def begun(self) -> Request:
        return self.named("?uploads")[0]

    @property
    def part(self) -> Request:
        return self.named("partNumber=1")[0]


@pytest.fixture
def seen(s3: Mapping[str, str]) -> Iterator[Seen]:
    config = bucket_config(dict(s3))
    found = Seen(config)

    def note(request: Request, pass_on: PassOn) -> Answer:
        found.requests.append(request)
        parts = urlsplit(request.target)
        # A client that takes it for a proxy sends the whole address.
        return pass_on(replace(request, target=parts._replace(scheme="", netloc="").geturl()))

    with proxy(config["store.url"], note) as address:
        config["store.url"] = address
        yield found


def test_ledger_and_objects_are_written_on_condition(seen: Seen) -> None:
    seen.commits(**{"storage.class": "io.confluent.connect.s3.storage.S3Storage"})
    entry = seen.named("PUT /")
    assert [one.headers["if-none-match"] for one in entry if one.target.endswith("1.json")] == ["*"]
    completed = [one for one in seen.named("uploadId=") if one.verb == "POST"]
    assert [one.headers["if-none-match"] for one in completed] == ["*", "*"]


def test_acl_and_encryption_are_asked_for(seen: Seen) -> None:
    seen.commits(
        **{
            "s3.acl.canned": "bucket-owner-full-control",
            "s3.ssea.name": "aws:kms",
            "s3.sse.kms.key.id": "some-key",
        }
    )
    headers = seen.begun.headers
    assert headers["x-amz-acl"] == "bucket-owner-full-control"
    assert headers["x-amz-server-side-encryption"] == "aws:kms"
    assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "some-key"


def test_a_key_of_the_customer_goes_with_every_part(seen: Seen) -> None:
    key = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
    config = {**seen.config, "s3.ssea.name": "AES256", "s3.sse.customer.key": key, **BASE}
    assert key not in repr(S3Target("job", config, open_store(config)).plan({}))
    seen.requests.clear()
    s3_subject(config).stage(0, 3)
    for request in (seen.begun, seen.part):
        assert request.headers["x-amz-server-side-encryption-customer-key"] == key
    assert "x-amz-server-side-encryption" not in seen.begun.headers
    with pytest.raises(ConfigError, match=r"Invalid value \[hidden\] .*: it must be 32 bytes in base64"):
        open_store({**config, "s3.sse.customer.key": "shorter"})


def test_tags_tell_offsets_and_records(seen: Seen) -> None:
    seen.commits(**{"s3.object.tagging": "true", "s3.object.tagging.key.value.pairs": "team:data,a:b"})
    tags = parse_qs(seen.begun.headers["x-amz-tagging"])
    assert {"team": ["data"], "a": ["b"]}.items() <= tags.items()
    told = [parse_qs(one.headers["x-amz-tagging"]) for one in seen.named("?uploads")]
    assert sorted((one["startOffset"], one["endOffset"], one["recordCount"]) for one in told) == [
        (["0"], ["2"], ["3"]),
        (["3"], ["3"], ["1"]),
    ]


@pytest.mark.parametrize("behavior", ["ignore", "fail"])
def test_a_store_that_takes_no_tags(s3: Mapping[str, str], behavior: str) -> None:
    config = bucket_config(dict(s3))

    def refuse(request: Request, pass_on: PassOn) -> Answer:
        if "x-amz-tagging" in request.headers:
            body = b"<Error><Code>AccessDenied</Code><Message>no tags</Message></Error>"
            return Answer(403, {"Content-Type": "application/xml"}, body)
        return pass_on(request)

    with proxy(config["store.url"], refuse) as address:
        keys = {"s3.object.tagging": "true", "s3.object.behavior.on.tagging.error": behavior}
        subject = s3_subject({**config, "store.url": address, **keys})
        if behavior == "ignore":
            subject.commit(0, 4, None)
            assert subject.visible() == [0, 1, 2, 3]
        else:
            with pytest.raises(
                SinkUnavailable, match="AccessDenied, HTTP 403; correct the login, or give it the right"
            ):
                subject.commit(0, 4, None)


def test_parts_have_their_size_and_a_digest_if_asked_for(seen: Seen) -> None:
    config = {**seen.config, **BASE, "s3.part.size": str(5 * 2**20), "s3.send.digest": "true"}
    store = open_store(config)
    body = b"x" * (5 * 2**20 + 1)
    upload = store.upload("big", io.BytesIO(body), {})
    store.complete(upload)
    assert store.read("big") == body
    parts = seen.named("partNumber=")
    assert [len(one.body) for one in parts] == [5 * 2**20, 1]
    digest = base64.b64encode(hashlib.md5(parts[1].body, usedforsecurity=False).digest()).decode()
    assert parts[1].headers["content-md5"] == digest


def test_the_bucket_is_in_the_path_or_in_the_name_of_the_host() -> None:
    def host(**keys: str) -> str:
        config = {
            **BASE,
            "s3.bucket.name": "lake",
            "s3.region": "eu-central-1",
            "aws.access.key.id": "a",
            "aws.secret.access.key": "b",
            **keys,
        }
        client = open_store(config)._client  # type: ignore[attr-defined]
        return urlsplit(client.generate_presigned_url("get_object", {"Bucket": "lake", "Key": "k"})).netloc

    assert host() == "s3.eu-central-1.amazonaws.com"
    virtual = {"s3.path.style.access.enabled": "false"}
    assert host(**virtual) == "lake.s3.eu-central-1.amazonaws.com"
    assert host(**virtual, **{"s3.wan.mode": "true"}) == "lake.s3-accelerate.amazonaws.com"
    problems = S3SinkPlugin().problems({**BASE, "s3.bucket.name": "lake", "s3.wan.mode": "true"})
    assert {one.key for one in problems} == {"s3.wan.mode", "s3.path.style.access.enabled"}


def test_a_role_is_assumed_with_the_keys_of_the_config(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    assumed: list[Role] = []

    def assume(role: Role) -> Keys:
        assumed.append(role)
        return Keys("id-of-role", "secret", "token")

    monkeypatch.setattr(aws_roles, "_assume", assume)
    aws_roles.login_of.cache_clear()
    seen.commits(
        **{
            "s3.credentials.provider.class": ROLE,
            "s3.credentials.provider.sts.role.arn": "arn:aws:iam::123456789012:role/lake",
            "s3.credentials.provider.sts.role.session.name": "ours",
            "s3.credentials.provider.sts.role.external.id": "outside",
            "s3.credentials.provider.sts.region": "eu-west-1",
        }
    )
    first = assumed[0]
    assert (first.session, first.external_id, first.region) == ("ours", "outside", "eu-west-1")
    assert first.keys is not None and first.keys.id == seen.config["aws.access.key.id"]
    assert "Credential=id-of-role/" in seen.begun.headers["authorization"]
    assert seen.begun.headers["x-amz-security-token"] == "token"


def test_a_proxy_gets_the_requests_with_its_login(seen: Seen) -> None:
    address = seen.config["store.url"]
    seen.commits(
        **{
            "store.url": "http://127.0.0.1:1",
            "s3.proxy.url": address,
            "s3.proxy.user": "some one",
            "s3.proxy.password": "pass:word",
        }
    )
    assert seen.begun.target.startswith("http://127.0.0.1:1/")
    login = base64.b64encode(b"some one:pass:word").decode()
    assert seen.begun.headers["proxy-authorization"] == f"Basic {login}"


def test_requests_are_tried_again(s3: Mapping[str, str]) -> None:
    config = bucket_config(dict(s3))
    failed = 0

    def fail_once(request: Request, pass_on: PassOn) -> Answer:
        nonlocal failed
        if "partNumber" in request.target and not failed:
            failed += 1
            return Answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
        return pass_on(request)

    with proxy(config["store.url"], fail_once) as address:
        with pytest.raises(SinkUnavailable, match="SlowDown"):
            s3_subject({**config, "store.url": address, "s3.part.retries": "0"}).stage(0, 3)
        failed = 0
        subject = s3_subject({**config, "store.url": address, "s3.part.retries": "1"})
        subject.commit(0, 3, None)
        assert subject.visible() == [0, 1, 2]


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ({"aws.access.key.id": "a"}, "aws.secret.access.key", "is missing, and 'aws.access.key.id' is set"),
        ({"store.url": "ftp://host"}, "store.url", "begins with http or https or file"),
        ({"store.url": "http://me:secret@host"}, "store.url", "has a login in it"),
        ({"store.url": "file://host/path"}, "store.url", "must be an absolute path"),
        ({"s3.proxy.url": "http://me:secret@host"}, "s3.proxy.url", "has a login in it"),
        ({"s3.credentials.provider.class": "a.B"}, "s3.credentials.provider.class", "none of the providers"),
        (
            {"s3.credentials.provider.class": ROLE},
            "s3.credentials.provider.sts.role.arn",
            "is missing: the role to be",
        ),
        ({"rotate.schedule.interval.ms": "1000"}, "timezone", "needs 'timezone'"),
        ({"s3.sse.customer.key": "a2V5", "s3.ssea.name": "aws:kms"}, "s3.sse.customer.key", "needs"),
    ],
)
def test_what_makes_no_store_is_refused(keys: dict[str, str], key: str, message: str) -> None:
    problems = S3SinkPlugin().problems({**BASE, "s3.bucket.name": "lake", **keys})
    assert [one.message for one in problems if one.key == key and message in one.message]
    assert not [one for one in problems if "secret" in one.message and "secret@" in one.message]


@pytest.mark.parametrize(
    "key",
    [
        *("enable.conditional.writes", "s3.elastic.buffer.enable", "s3.elastic.buffer.init.capacity"),
        *("max.write.duration.ms", "partitioner.max.open.files", "max.files.scan.limit"),
        *(
            "s3.http.send.expect.continue",
            "s3.retry.backoff.ms",
            "schema.generator.class",
        ),
        *("hive.integration", "shutdown.timeout.ms", "schemas.cache.config"),
    ],
)
def test_keys_of_parts_that_java_has_and_we_do_not_are_taken_and_said_to_have_no_effect(key: str) -> None:
    assert key in WITHOUT_EFFECT
    value = "true" if "enable" in key or key.startswith(("hive", "s3.http")) else "1"
    assert any(f"'{key}' has no effect" in one for one in S3SinkPlugin().warnings({key: value}))


def test_the_first_pause_after_an_error_is_that_of_the_config() -> None:
    config = {**BASE, "s3.bucket.name": "lake"}
    assert S3SinkPlugin().retries({**config, "retry.backoff.ms": "1500"}).first_seconds == 1.5
    assert S3SinkPlugin().retries(config).first_seconds is None


def test_hosts_that_the_worker_does_not_allow_are_not_reached() -> None:
    def refused(**keys: str) -> list[str]:
        config = {**BASE, "s3.bucket.name": "lake", **keys}
        worker = {"icestream.allowed.hosts": "*.example.com"}
        return [one.key for one in host_problems(config, worker, S3SinkPlugin())]

    allowed = {"store.url": "https://store.example.com"}
    assert refused(**allowed) == []
    assert refused(**{"store.url": "https://elsewhere.org:9000"}) == ["store.url"]
    assert refused(**allowed, **{"s3.proxy.url": "elsewhere.org:3128"}) == ["s3.proxy.url"]
    assert refused() == ["s3.bucket.name"]


def test_files_of_the_worker_are_written_only_where_it_says_so(tmp_path: Path) -> None:
    allowed = {"icestream.s3.folders": str(tmp_path)}
    plugin = S3SinkPlugin()

    def refused(folder: str, bucket: str, worker: Mapping[str, str]) -> bool:
        config = {**BASE, "store.url": f"file://{folder}", "s3.bucket.name": bucket}
        return bool(plugin.not_allowed(config, worker))

    assert not refused(str(tmp_path), "lake", allowed)
    assert refused(str(tmp_path), "lake", {})
    assert refused("/etc", "lake", allowed)
    assert refused(str(tmp_path), "../..", allowed)
    (tmp_path / "away").symlink_to("/etc")
    assert refused(f"{tmp_path}/away", "lake", allowed)


def test_a_bucket_that_is_missing_is_a_problem_of_its_key(s3: Mapping[str, str]) -> None:
    config = {**bucket_config(dict(s3)), **BASE, "s3.bucket.name": "no-such-bucket"}
    (probe,) = S3SinkPlugin().probes(config, {})
    (problem,) = probe.ask(probe)
    assert problem.key == "s3.bucket.name"
    assert problem.message == "s3://no-such-bucket does not exist; create the bucket"
    with pytest.raises(ConfigError, match="create the bucket"):
        S3Target("job", config, open_store(config)).found()
