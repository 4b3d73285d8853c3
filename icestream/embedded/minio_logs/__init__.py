"""Realistic MinIO log records: deterministic by seed, each one different, fast enough to load a broker."""

from icestream.embedded.minio_logs.draws import BASE, request_id
from icestream.embedded.minio_logs.records import Kind, bad_positions, generate

__all__ = ["BASE", "Kind", "bad_positions", "generate", "request_id"]
