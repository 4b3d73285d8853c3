"""The error log: a message with the place in MinIO's source where it arose."""

from __future__ import annotations

from typing import Final

from icestream.embedded.minio_logs.draws import BUCKETS, NODES, Draw

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
