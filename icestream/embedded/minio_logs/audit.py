"""The audit log: who changed what. `details` is a JSON document inside a string, as the table stores it."""

from __future__ import annotations

from typing import Final

from icestream.embedded.minio_logs.draws import BUCKETS, NODES, USERS, Draw

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
