"""MinIO's three logs as JSON: calls with their timings (API), faults with their place in the source
(error), and changes of the configuration (audit). Called by `records`."""

from __future__ import annotations

from typing import Final, NamedTuple

from icestream.embedded.minio_logs.draws import BUCKETS, NODES, USERS, Draw


class _Call(NamedTuple):
    """A kind of call: which fields it fills, and how often it occurs in 64."""

    name: str
    type: str
    weight: int
    has_bucket: bool = True
    has_object: bool = True
    sends: bool = False
    receives: bool = False
    query: str = ""


_CALLS: Final = (
    _Call("s3.GetObject", "object", 24, receives=True),
    _Call("s3.PutObject", "object", 14, sends=True),
    _Call("s3.HeadObject", "object", 10),
    _Call("s3.PutObjectPart", "object", 4, sends=True, query='"partNumber":"7","uploadId":"%s"'),
    _Call("s3.DeleteObject", "object", 3),
    _Call(
        "s3.ListObjectsV2",
        "bucket",
        5,
        has_object=False,
        receives=True,
        query='"list-type":"2","prefix":"%s"',
    ),
    _Call("s3.GetBucketLocation", "bucket", 2, has_object=False, receives=True, query='"location":""'),
    _Call("s3.ListBuckets", "bucket", 1, has_bucket=False, has_object=False, receives=True),
    _Call("admin.ServerInfo", "admin", 1, has_bucket=False, has_object=False, receives=True),
)
_WEIGHTED: Final = tuple(call for call in _CALLS for _ in range(call.weight))
_STATUS: Final = (200,) * 27 + (206, 206, 404, 403, 503)
_AGENTS: Final = (
    "MinIO (linux; amd64) minio-go/v7.0.95 mc/2026-08-13",
    "aws-sdk-java/2.31.9 Linux/6.8.0 OpenJDK/21.0.7",
    "Boto3/1.40.1 md/Botocore#1.40.1 os/linux#6.8.0 lang/python#3.12.4",
    "aws-sdk-go-v2/1.36.3 os/linux lang/go#1.24.5 api/s3#1.79.2",
)
_PREFIXES: Final = (
    "events",
    "daily",
    "raw/eu-west",
    "raw/us-east",
    "exports/csv",
    "img/512",
    "models/v3",
    "tmp",
)
_SUFFIXES: Final = ("parquet", "json.gz", "csv", "png")


def api_log(draw: Draw) -> str:
    octets, digits = draw.octets, draw.hex
    call = _WEIGHTED[octets[0] & 63]
    status = _STATUS[octets[1] & 31]
    user = USERS[octets[2] & 7]
    where, path = _where(call, draw)
    size = octets[3] << 16 | octets[4] << 8 | octets[5] | 1
    first_byte, written = _timings(octets)
    answered = first_byte + written
    traffic = f',"rx":{size}' if call.sends else ""
    if call.receives and status < 300:
        traffic += f',"tx":{size}'
    query = call.query % digits[20:52] if "%s" in call.query else call.query
    asked = f',"requestQuery":{{{query}}}' if query else ""
    # One call in eight comes with a service account's key, and so has a parent; one in sixteen has claims.
    parent = f',"parentUser":"{user}"' if octets[6] & 7 == 0 else ""
    claims = f',"requestClaims":{{"sub":"{user}","exp":"{size}"}}' if octets[7] & 15 == 0 else ""
    return (
        f'{{"version":"1","time":"{draw.time}","node":"{NODES[octets[8] & 3]}","origin":"client",'
        f'"type":"{call.type}","name":"{call.name}"{where},"callInfo":{{"httpStatusCode":{status}{traffic},'
        f'"txHeaders":{256 + octets[9]},'
        f'"timeToFirstByte":"{first_byte // 1000000}.{first_byte % 1000000:06d}ms",'
        f'"responseWriteTime":"{written // 1000}.{written % 1000:03d}µs",'
        f'"timeToResponse":"{answered // 1000000}.{answered % 1000000:06d}ms",'
        f'"sourceHost":"10.1.{octets[10]}.{octets[11]}","requestID":"{draw.request_id}",'
        f'"userAgent":"{_AGENTS[octets[12] & 3]}","requestPath":"{path}",'
        f'"requestHost":"minio:9000"{claims}{asked},'
        f'"requestHeader":{{"X-Amz-Content-Sha256":"{digits[52:116]}"}},'
        f'"responseHeader":{{"ETag":"\\"{digits[84:116]}\\"","Server":"MinIO"}},'
        f'"accessKey":"AKIA{digits[112:128]}"{parent}}}}}'
    )


def _timings(octets: bytes) -> tuple[int, int]:
    """Nanoseconds to the first byte, 1–67 ms, and of the writing, below 1 ms; no part or sum ends in 0."""
    first_byte = 1_000_000 + (octets[13] << 18 | octets[14] << 10 | octets[15] << 2 | 1) // 10 * 10 + 4
    return first_byte, 1_000 + (octets[16] << 8 | octets[17]) * 10 + 3


def _where(call: _Call, draw: Draw) -> tuple[str, str]:
    """The fields that say what the call was about, and its path."""
    octets, digits = draw.octets, draw.hex
    bucket = BUCKETS[octets[18] & 7]
    if call.has_object:
        key = f"{_PREFIXES[octets[19] & 7]}/{draw.day}/{digits[:16]}.{_SUFFIXES[octets[20] & 3]}"
        fields = f',"bucket":"{bucket}","object":"{key}"'
        if octets[18] & 1:  # half of the buckets keep versions
            version = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:30]}"
            fields += f',"versionId":"{version}"'
        if octets[21] & 3 == 0:
            fields += f',"tags":{{"team":"{USERS[octets[22] & 7]}","retention":"{octets[23]}d"}}'
        return fields, f"/{bucket}/{key}"
    if call.has_bucket:
        return f',"bucket":"{bucket}"', f"/{bucket}/"
    return "", "/"


_FAULTS: Final = (
    ("drive not found: /mnt/drive%d", "s3.GetObject", "cmd/xl-storage.go", "xlStorage.ReadVersion"),
    ("too few drives are online for the write: %d", "s3.PutObject", "cmd/erasure-object.go",
     "erasureObjects.putObject"),
    ("context deadline exceeded after %d ms", "s3.ListObjectsV2", "cmd/metacache-set.go",
     "erasureObjects.listPath"),
    ("file is corrupted: checksum of part %d differs", "s3.GetObject", "cmd/bitrot-streaming.go",
     "streamingBitrotReader.ReadAt"),
    ("unable to reach peer node %d: connection refused", "internal.PeerHealth", "cmd/peer-rest-client.go",
     "peerRESTClient.call"),
    ("replication target is offline, %d objects wait", "internal.Replicate", "cmd/bucket-replication.go",
     "replicateObject"),
    ("lock for the object was lost after %d ms", "s3.CompleteMultipartUpload", "internal/dsync/drwmutex.go",
     "DRWMutex.refreshLock"),
    ("access key of request %d is unknown", "s3.HeadObject", "cmd/auth-handler.go",
     "checkRequestAuthTypeCredential"),
)  # fmt: skip


def error_log(draw: Draw) -> str:
    octets, digits = draw.octets, draw.hex
    text, api, file, function = _FAULTS[octets[0] & 7]
    return (
        f'{{"version":"1","node":"{NODES[octets[1] & 3]}","time":"{draw.time}",'
        f'"message":"{text % (octets[2] << 4 | octets[3])}","apiName":"{api}"{_trace(file, function, draw)},'
        f'"tags":{{"requestID":"{draw.request_id}","deploymentID":"{digits[24:56]}",'
        f'"remoteHost":"10.1.{octets[4]}.{octets[5]}"}}}}'
    )


def _trace(file: str, function: str, draw: Draw) -> str:
    """A quarter of the errors comes without variables, an eighth without any trace."""
    octets = draw.octets
    if octets[6] & 7 == 0:
        return ""
    line = octets[7] << 3 | octets[8] & 7
    source = f'"{file}:{line}:cmd.{function}()","cmd/object-handlers.go:{line + 211}:cmd.serve()"'
    if octets[9] & 3 == 0:
        return f',"trace":{{"source":[{source}]}}'
    variables = f'"bucket":"{BUCKETS[octets[10] & 7]}","object":"raw/{draw.hex[:24]}"'
    return f',"trace":{{"source":[{source}],"variables":{{{variables}}}}}'


_CHANGES: Final = (
    ("config", "admin.SetConfigKV", "set",
     r"{\"config\":{\"subSystem\":\"scanner\",\"key\":\"delay\",\"newValue\":\"%s\"}}"),
    ("user", "admin.AddUser", "create",
     r"{\"user\":{\"userName\":\"%s\",\"newStatus\":\"enabled\"}}"),
    ("service-account", "admin.AddServiceAccount", "create",
     r"{\"serviceAccount\":{\"accountName\":\"%s\",\"updatedPolicy\":true}}"),
    ("policy", "admin.AttachPolicy", "attach",
     r"{\"policy\":{\"policyName\":\"%s\",\"policiesAttached\":[\"readwrite\"]}}"),
    ("group", "admin.UpdateGroupMembers", "update",
     r"{\"group\":{\"groupName\":\"%s\",\"membersAdded\":[\"li.wei\"]}}"),
    ("bucket", "s3.PutBucketQuota", "update",
     r"{\"bucketQuota\":{\"bucketName\":\"%s\",\"quotaSize\":1099511627776,\"quotaType\":\"hard\"}}"),
    ("lifecycle", "s3.PutBucketLifecycle", "set",
     r"{\"bucketConfig\":{\"bucketName\":\"%s\",\"configType\":\"lifecycle\"}}"),
    ("heal", "admin.Heal", "start",
     r"{\"heal\":{\"operation\":\"start\",\"prefix\":\"%s\"}}"),
)  # fmt: skip
_ABOUT_A_BUCKET: Final = frozenset({"bucket", "lifecycle", "heal"})


def audit_log(draw: Draw) -> str:
    octets, digits = draw.octets, draw.hex
    category, api, action, details = _CHANGES[octets[0] & 7]
    user = USERS[octets[1] & 7]
    bucket = f',"bucket":"{BUCKETS[octets[2] & 7]}"' if category in _ABOUT_A_BUCKET else ""
    told = f',"details":"{details % digits[:16]}"' if octets[3] & 3 else ""
    tags = f',"tags":{{"ticket":"OPS-{octets[4] << 8 | octets[5]}"}}' if octets[6] & 3 == 0 else ""
    claims = f',"requestClaims":{{"sub":"{user}","iss":"sso.example.net"}}' if octets[7] & 1 else ""
    parent = f',"parentUser":"{user}"' if octets[8] & 1 else ""
    return (
        f'{{"version":"1","time":"{draw.time}","node":"{NODES[octets[9] & 3]}","apiName":"{api}",'
        f'"category":"{category}","action":"{action}"{bucket}{tags},"requestID":"{draw.request_id}"{claims},'
        f'"sourceHost":"10.1.{octets[10]}.{octets[11]}","accessKey":"AKIA{digits[16:32]}"{parent}{told}}}'
    )
