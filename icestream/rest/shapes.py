"""The service's facts as Kafka Connect's JSON: same keys, same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from icestream.api.config import Setting
from icestream.api.status import Progress
from icestream.cluster.configs.reports import text_of
from icestream.cluster.views import (
    CheckedSetting,
    ConfigReport,
    ConnectorInfo,
    ConnectorStatus,
    TaskConfig,
    TaskStatus,
)
from icestream.plugins import ListedPlugin

Json = dict[str, Any]


def info_json(info: ConnectorInfo) -> Json:
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [{"connector": info.name, "task": task} for task in info.task_ids],
        "type": info.type,
    }


def status_json(status: ConnectorStatus) -> Json:
    return {
        "name": status.name,
        "connector": _state(status),
        "tasks": [task_status_json(task) for task in status.tasks],
        "type": status.type,
    }


def task_status_json(task: TaskStatus) -> Json:
    return {"id": task.id, **_state(task)}


def _state(part: ConnectorStatus | TaskStatus) -> Json:
    shape: Json = {"state": part.state.value, "worker_id": part.worker_id, "version": part.version}
    if part.trace:
        shape["trace"] = part.trace
    return shape


def task_json(task: TaskConfig) -> Json:
    return {"id": {"connector": task.connector, "task": task.task}, "config": dict(task.config)}


def progress_json(progress: Progress) -> Json:
    # Without what may be thousands of lines: the console asks for the partitions of one connector.
    shape = asdict(replace(progress, partitions=()))
    del shape["partitions"]
    return {**shape, "warnings": list(progress.warnings)}


def plugins_json(listed: Sequence[ListedPlugin]) -> list[Json]:
    return [{"class": one.class_name, "type": one.kind, "version": one.version} for one in listed]


def report_json(report: ConfigReport) -> Json:
    shape: Json = {
        "name": report.name,
        "error_count": report.error_count,
        "groups": report.groups,
        "configs": [
            {
                "definition": key_json(checked.definition) if checked.definition else None,
                "value": {
                    "name": checked.name,
                    "value": checked.value,
                    "recommended_values": list(checked.recommended),
                    "errors": list(checked.errors),
                    "visible": checked.is_visible,
                },
            }
            for checked in report.settings
        ],
    }
    if report.warnings:
        shape["warnings"] = list(report.warnings)
    return shape


def definitions_json(settings: tuple[CheckedSetting, ...]) -> list[Json]:
    return [key_json(checked.definition) for checked in settings if checked.definition]


def key_json(setting: Setting) -> Json:
    return {
        "name": setting.name,
        "type": setting.type.value,
        "required": setting.is_required,
        "default_value": None if setting.is_required else text_of(setting.default),
        "importance": setting.importance,
        "documentation": setting.doc,
        "group": setting.group,
        "order_in_group": setting.order,
        "width": setting.width,
        "display_name": setting.display_name or setting.name,
        "dependents": [],
    }
