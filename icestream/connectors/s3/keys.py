"""The keys of the S3 sink: those of Confluent's connector, and a few of our own. Declared by `plugin`;
`checks` tells what does not go together, `settings` reads a config."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type
from icestream.connectors.s3 import clouds

STORAGE: Final = "io.confluent.connect.s3.storage.S3Storage"
_FORMATS: Final = "io.confluent.connect.s3.format."
_PARTITIONERS: Final = "io.confluent.connect.storage.partitioner."
FORMATS: Final = tuple(
    f"{_FORMATS}{name}"
    for name in ("json.JsonFormat", "avro.AvroFormat", "parquet.ParquetFormat", "bytearray.ByteArrayFormat")
)
AVRO_FORMAT: Final = f"{_FORMATS}avro.AvroFormat"
PARTITIONERS: Final = tuple(
    f"{_PARTITIONERS}{name}Partitioner" for name in ("Default", "Field", "TimeBased", "Daily", "Hourly")
)
PROVIDER: Final = "s3.credentials.provider."
ROLE_PROVIDER: Final = "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider"
DEFAULT_PROVIDERS: Final = frozenset(
    {
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    }
)
"""Those that mean: whatever login the worker has."""
COMMIT_INTERVAL: Final = "icestream.s3.commit.interval.ms"
AT_LEAST_ONCE: Final = "icestream.s3.at-least-once"
EXISTING: Final = "icestream.s3.existing.objects"
FOLDERS: Final = Setting(
    "icestream.s3.folders",
    Type.LIST,
    [],
    "The folders of this machine that S3 sinks may write to, where store.url begins with file://; none if it "
    "is not set.",
)
SEPARATOR: Final = "format.bytearray.separator"
_KEY_BYTES: Final = 32
_LEAST_PART: Final = 5 * 2**20
_ACLS: Final = (
    *("private", "public-read", "public-read-write", "authenticated-read", "log-delivery-write"),
    *("bucket-owner-read", "bucket-owner-full-control", "aws-exec-read"),
)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-_]{1,253}[A-Za-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9\-]{1,40}")
_KEY_ID: Final = re.compile(r"[!-~]*")
_WIDEST: Final = 255


def _bucket(value: str) -> str | None:
    if _BUCKET.fullmatch(value):
        return None
    return (
        "it is no name of a bucket; write 3 to 255 letters, digits, dots and dashes, "
        "without s3:// and folders"
    )


def _region(value: str) -> str | None:
    return None if _REGION.fullmatch(value) else "it is no region of AWS, such as eu-central-1"


def _key_id(value: str) -> str | None:
    return None if _KEY_ID.fullmatch(value) else "it is no id of a key of AWS"


def _width(value: int) -> str | None:
    return None if value <= _WIDEST else f"no name of an object takes more than {_WIDEST} digits"


def _part_size(value: int) -> str | None:
    return None if value >= _LEAST_PART else f"Part size must be at least {_LEAST_PART}"


def _level(value: int) -> str | None:
    return None if -1 <= value <= 9 else "the compression level must be -1 to 9"


def _customer_key(value: str) -> str | None:
    try:
        size = len(base64.b64decode(value, validate=True))
    except ValueError:
        size = 0
    return None if size == _KEY_BYTES else f"it must be {_KEY_BYTES} bytes in base64"


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda value: None if value in words else f"it is none of {', '.join(words)}"


_HIGH: Final = "HIGH"
_LOW: Final = "LOW"


def _of_confluent() -> tuple[Setting, ...]:
    string, number, long, boolean = Type.STRING, Type.INT, Type.LONG, Type.BOOLEAN
    return (
        Setting("s3.bucket.name", string, REQUIRED, "The bucket.", check=_bucket, importance=_HIGH),
        Setting("s3.region", string, "us-west-2", "The region of the bucket.", check=_region),
        Setting(
            "store.url",
            string,
            None,
            "The address of a store that is not AWS, such as http://minio:9000; gs://bucket of Google; "
            "az://container or abfss://container@account.dfs.core.windows.net of Azure; or "
            "file:///a/folder, in which the bucket is a folder.",
        ),
        Setting("storage.class", Type.CLASS, STORAGE, "Always the one class.", check=_one_of(STORAGE)),
        Setting(
            "format.class",
            Type.CLASS,
            REQUIRED,
            f"The format of the objects: one of {', '.join(FORMATS)}.",
            check=_one_of(*FORMATS),
            importance=_HIGH,
        ),
        Setting(
            "flush.size",
            number,
            REQUIRED,
            "Records of one topic partition after which its objects are complete. What is less waits.",
            at_least=1,
            importance=_HIGH,
        ),
        Setting(
            "rotate.interval.ms",
            long,
            -1,
            "With a partitioner by time: the span of the records' times after which objects are complete.",
        ),
        Setting(
            "rotate.schedule.interval.ms",
            long,
            -1,
            "Objects are complete at multiples of this since midnight in the timezone, by the clock.",
        ),
        Setting(
            "rotate.file.on.partition.change",
            boolean,
            True,
            "With rotate.interval.ms: a record of another encoded partition completes the objects.",
        ),
        Setting(
            "partitioner.class",
            Type.CLASS,
            PARTITIONERS[0],
            f"Which folder a record goes to: one of {', '.join(PARTITIONERS)}.",
            check=_one_of(*PARTITIONERS),
            importance=_HIGH,
        ),
        Setting("partition.field.name", Type.LIST, [], "The fields of the FieldPartitioner, such as a.b."),
        Setting("partition.duration.ms", long, -1, "The width of a folder of the TimeBasedPartitioner."),
        Setting("path.format", string, "", "The folders of the TimeBasedPartitioner, a pattern of Joda."),
        Setting(
            "locale",
            string,
            "",
            "The language of names in path.format: en. Others do for patterns without names.",
        ),
        Setting("timezone", string, "", "The time zone of folders by time and of the schedule."),
        Setting(
            "timestamp.extractor",
            string,
            "Wallclock",
            "The time of a record: Wallclock, Record (its timestamp) or RecordField.",
        ),
        Setting("timestamp.field", string, "timestamp", "The field of the RecordField extractor."),
        Setting("topics.dir", string, "topics", "The top folder; blank for none.", importance=_HIGH),
        Setting("directory.delim", string, "/", "Between the parts of a path."),
        Setting("file.delim", string, "+", "Between topic, partition and offset in the name of an object."),
        Setting(
            "filename.offset.zero.pad.width",
            number,
            10,
            "Digits of the offset in the name of an object.",
            at_least=0,
            check=_width,
            importance=_LOW,
        ),
        Setting("s3.part.size", number, 26_214_400, "Bytes of a part of an upload.", check=_part_size),
        Setting(
            "s3.compression.type",
            string,
            "none",
            "none or gzip, for JSON and bytes.",
            choices=("none", "gzip"),
            importance=_LOW,
        ),
        Setting("s3.compression.level", number, -1, "Of gzip: -1 to 9.", check=_level, importance=_LOW),
        Setting(
            "avro.codec",
            string,
            "null",
            "null, deflate, snappy or bzip2.",
            choices=_AVRO_CODECS,
            importance=_LOW,
        ),
        Setting(
            "parquet.codec",
            string,
            "snappy",
            "The compression inside of Parquet.",
            choices=_PARQUET_CODECS,
            importance=_LOW,
        ),
        Setting(
            "json.decimal.format",
            string,
            "BASE64",
            "How decimals are written in JSON: BASE64 or NUMERIC.",
            choices=("BASE64", "NUMERIC"),
            ignores_case=True,
        ),
        Setting("format.bytearray.extension", string, ".bin", "Of objects of bytes.", importance=_LOW),
        Setting(
            SEPARATOR,
            string,
            None,
            "Written after every record of bytes; without it a line feed.",
            importance=_LOW,
        ),
        Setting(
            "schema.compatibility",
            string,
            "NONE",
            "Which changes of the schema complete an object: NONE (all), BACKWARD, FORWARD or FULL.",
        ),
        Setting("schemas.cache.config", number, 1000, "Schemas that are kept.", importance=_LOW),
        Setting("enhanced.avro.schema.support", boolean, True, "Names of enums and packages in Avro."),
        Setting("connect.meta.data", boolean, True, "What Connect knows of a schema is kept in Avro's."),
        Setting("allow.optional.map.keys", boolean, False, "Whether maps in Avro may have optional keys."),
        Setting(
            "behavior.on.null.values",
            string,
            "fail",
            "Records without a value: fail, ignore, or write (their keys).",
            choices=("fail", "ignore", "write"),
            ignores_case=True,
            importance=_LOW,
        ),
        Setting("tombstone.encoded.partition", string, "tombstone", "The folder of records without a value."),
        Setting(
            "report.null.values.to.dlq",
            boolean,
            True,
            "With behavior.on.null.values=ignore: each record that is ignored becomes a dead letter.",
        ),
        Setting("store.kafka.keys", boolean, False, "Whether keys get an object beside that of the values."),
        Setting(
            "keys.format.class", Type.CLASS, AVRO_FORMAT, "The format of the keys.", check=_one_of(*FORMATS)
        ),
        Setting("store.kafka.headers", boolean, False, "Whether headers get an object of their own."),
        Setting(
            "headers.format.class",
            Type.CLASS,
            AVRO_FORMAT,
            "The format of the headers.",
            check=_one_of(*FORMATS[:3]),
        ),
        Setting(
            f"{PROVIDER}class",
            Type.CLASS,
            "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
            f"Who logs in: the default chain of AWS, or {ROLE_PROVIDER}.",
            importance=_LOW,
        ),
        Setting(f"{PROVIDER}sts.role.arn", string, None, "The role to assume.", importance=_LOW),
        Setting(
            f"{PROVIDER}sts.role.session.name", string, None, "The name of its session.", importance=_LOW
        ),
        Setting(f"{PROVIDER}sts.role.external.id", Type.PASSWORD, None, "Its external id.", importance=_LOW),
        Setting(f"{PROVIDER}sts.region", string, None, "The region of STS.", check=_region, importance=_LOW),
        Setting(
            "aws.access.key.id",
            string,
            "",
            "The id of a key; else the provider's login.",
            check=_key_id,
            importance=_HIGH,
        ),
        Setting("aws.secret.access.key", Type.PASSWORD, None, "The secret of the key.", importance=_HIGH),
        Setting("s3.path.style.access.enabled", boolean, True, "Whether the bucket is part of the path."),
        Setting("s3.wan.mode", boolean, False, "S3's transfer acceleration."),
        Setting(
            "s3.ssea.name",
            string,
            "",
            "Encryption by the store: AES256 or aws:kms.",
            check=_one_of("", "AES256", "aws:kms", "aws:kms:dsse"),
            importance=_LOW,
        ),
        Setting("s3.sse.kms.key.id", string, "", "The key of aws:kms.", importance=_LOW),
        Setting(
            "s3.sse.customer.key",
            Type.PASSWORD,
            None,
            "A key of your own, 32 bytes in base64.",
            check=_customer_key,
            importance=_LOW,
        ),
        Setting(
            "s3.acl.canned",
            string,
            None,
            f"The ACL of the objects: one of {', '.join(_ACLS)}.",
            check=_one_of(*_ACLS),
            importance=_LOW,
        ),
        Setting(
            "s3.object.tagging",
            boolean,
            False,
            "Whether objects get the tags startOffset, endOffset and recordCount.",
            importance=_LOW,
        ),
        Setting(
            "s3.object.tagging.key.value.pairs", Type.LIST, [], "More tags, as key:value.", importance=_LOW
        ),
        Setting(
            "s3.object.behavior.on.tagging.error",
            string,
            "ignore",
            "ignore or fail.",
            choices=("ignore", "fail"),
            ignores_case=True,
            importance=_LOW,
        ),
        Setting("s3.part.retries", number, 3, "How often a request is tried again.", at_least=0),
        Setting(
            "s3.retry.backoff.ms", long, 200, "The first pause between tries.", at_least=0, importance=_LOW
        ),
        Setting(
            "retry.backoff.ms",
            long,
            5000,
            "The first pause after an error; later ones are longer.",
            at_least=0,
            importance=_LOW,
        ),
        Setting("s3.send.digest", boolean, False, "Whether parts are sent with a checksum of MD5."),
        Setting(
            "s3.http.send.expect.continue", boolean, True, "Whether large parts ask before they are sent."
        ),
        Setting("s3.proxy.url", string, "", "An HTTP proxy.", importance=_LOW),
        Setting("s3.proxy.user", string, None, "Its user.", importance=_LOW),
        Setting("s3.proxy.password", Type.PASSWORD, None, "Its password.", importance=_LOW),
        Setting("s3.elastic.buffer.enable", boolean, False, "Of the buffers of Java's connector."),
        Setting("s3.elastic.buffer.init.capacity", number, 131_072, "Of the buffers of Java's connector."),
        Setting("max.write.duration.ms", long, 2**63 - 1, "Of a put of Java's framework."),
        Setting(
            "s3.schema.partition.affix.type",
            string,
            "NONE",
            "NONE, or PREFIX or SUFFIX: schema_name=<name> as part of the path.",
            choices=("NONE", "PREFIX", "SUFFIX"),
            ignores_case=True,
            importance=_LOW,
        ),
        Setting("enable.conditional.writes", boolean, True, "Conditional writes, which are always on."),
        Setting("partitioner.max.open.files", number, -1, "Of Java's writers.", importance=_LOW),
        Setting("max.files.scan.limit", number, 100, "Of Java's search for free names.", importance=_LOW),
        Setting("schema.generator.class", string, None, "Of versions before 5.", importance=_LOW),
        Setting("hive.integration", boolean, False, "Of the HDFS connector.", importance=_LOW),
        Setting("shutdown.timeout.ms", long, None, "Of the HDFS connector.", importance=_LOW),
    )


_AVRO_CODECS: Final = ("null", "deflate", "snappy", "bzip2")
_PARQUET_CODECS: Final = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")

_OURS: Final = (
    Setting(
        COMMIT_INTERVAL,
        Type.LONG,
        -1,
        "What waits for flush.size is written after this time all the same; -1: it waits, as in Java.",
        importance=_LOW,
    ),
    Setting(
        AT_LEAST_ONCE,
        Type.BOOLEAN,
        False,
        "Whether a store without conditional writes is taken: records may then be repeated, and a second "
        "worker of the connector is kept out by Kafka alone.",
        importance=_LOW,
    ),
    Setting(
        EXISTING,
        Type.STRING,
        "fail",
        "What becomes of an object that has the name of a new one and is not of this connector: fail, or "
        "replace it, as Java does.",
        choices=("fail", "replace"),
        importance=_LOW,
    ),
)

S3_SINK: Final = ConfigDef((*_of_confluent(), *clouds.settings(), *_OURS), (PROVIDER,))
_WITHOUT_BUCKET: Final = ConfigDef(
    tuple(replace(one, default="") if one.name == clouds.BUCKET else one for one in S3_SINK.settings),
    S3_SINK.prefixes,
)


def definition(config: Config) -> ConfigDef:
    """An address of Google or Azure has the bucket in it."""
    return _WITHOUT_BUCKET if clouds.is_cloud(config) else S3_SINK


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "enable.conditional.writes": "every object is written on condition that its name is free",
    "s3.elastic.buffer.enable": "buffers grow as they need, and go to disk",
    "s3.elastic.buffer.init.capacity": "buffers grow as they need, and go to disk",
    "max.write.duration.ms": "no framework waits for a put",
    "partitioner.max.open.files": "records are gathered by object, which needs no open files",
    "max.files.scan.limit": "nobody looks for free names",
    "s3.http.send.expect.continue": "the client decides by the size of a part",
    "s3.retry.backoff.ms": "the client's own pause grows with the number of tries",
    "schemas.cache.config": "schemas are kept as long as a batch needs them",
    "schema.generator.class": "it belongs to versions before 5",
    "hive.integration": "it belongs to the HDFS connector",
    "shutdown.timeout.ms": "it belongs to the HDFS connector",
}
