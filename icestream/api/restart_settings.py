"""The settings of connectors that start again by themselves after a failure."""

from __future__ import annotations

from typing import Final

from icestream.api.config import ConfigDef, Setting, Type

RESTARTS: Final = ConfigDef(
    (
        Setting(
            "icestream.restart.policy",
            Type.STRING,
            "never",
            "never: a failed connector waits for a person; on-failure: it starts again by itself.",
            choices=("never", "on-failure"),
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.attempts",
            Type.INT,
            10,
            "How often a connector starts again before it waits for a person; success begins the count anew.",
            at_least=1,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.delay.ms",
            Type.LONG,
            1_000,
            "The wait before the first start; it doubles from start to start.",
            at_least=0,
            importance="LOW",
            group="Icestream",
        ),
        Setting(
            "icestream.restart.delay.max.ms",
            Type.LONG,
            300_000,
            "The longest wait between two starts.",
            at_least=0,
            importance="LOW",
            group="Icestream",
        ),
    )
)
