"""Which tests one of the processes of a run takes together: a file, or files that share what costs."""

from __future__ import annotations

from typing import Final

_TOGETHER: Final = {
    "tests/packages/": "an installed wheel",
    "tests/parity/": "both workers",
    "tests/kubernetes/": "a Kubernetes API server",
    "tests/console/": "a browser",
    "tests/images/": "a container registry",
    "tests/image/": "the image",
    "tests/integration/test_registry": "a Schema Registry",
    "tests/integration/test_secure_": "a broker with TLS",
    "tests/integration/test_worker.py": "a worker with Spark",
    "tests/integration/test_record_path.py": "a worker with Spark",
    "tests/integration/test_actuator.py": "a worker with Spark",
    "tests/integration/test_iceberg_": "a worker with Spark",
    "tests/integration/test_routing.py": "a worker with Spark",
    "tests/integration/test_delta.py": "a worker with Spark",
    "tests/integration/test_s3_worker.py": "a worker with Spark",
    "tests/integration/test_maintenance.py": "a worker with Spark",
    "tests/integration/test_own_dashboards.py": "a worker with Spark",
    "tests/integration/test_upserts.py": "a worker with Spark",
    "tests/integration/test_metrics.py": "a worker with Spark",
    "tests/integration/foreign/test_catalogs.py": "another Spark",
    "tests/integration/foreign/test_checks.py": "another Spark",
    "tests/integration/foreign/test_rest_logins.py": "another Spark",
    "tests/integration/foreign/test_spark_": "another Spark",
}
"""How a path begins → what the tests under it share."""


def work_unit(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return next((shared for start, shared in _TOGETHER.items() if file.startswith(start)), file)
