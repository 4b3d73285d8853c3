"""Log lines for people and for programs: time, level, logger, worker, connector, batch, what happened.
Nothing secret is ever in them."""

from icestream.logs.context import about, at_batch, for_connector, of_worker
from icestream.logs.flood import KEPT, FloodFilter
from icestream.logs.lines import FORMATS, JsonFormatter, LineFormatter
from icestream.logs.secrets import conceal, concealed, concealed_in, hidden, masked, masked_value
from icestream.logs.setup import LoggerLevel, Logging, audit_handler, configure, configure_process, configured
from icestream.logs.stderr import own_stderr

__all__ = [
    "FORMATS",
    "KEPT",
    "FloodFilter",
    "JsonFormatter",
    "LineFormatter",
    "LoggerLevel",
    "Logging",
    "about",
    "at_batch",
    "audit_handler",
    "conceal",
    "concealed",
    "concealed_in",
    "configure",
    "configure_process",
    "configured",
    "for_connector",
    "hidden",
    "masked",
    "masked_value",
    "of_worker",
    "own_stderr",
]
