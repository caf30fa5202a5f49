"""Lines in the host's log: a message, and names with values.

`logging` of the standard library goes to the host too; its `extra` becomes names with values. A message or
value that is not a str is written as its `str`. The text of a line never raises an exception.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from . import _host
from ._values import choice, printable

Level = Literal["trace", "debug", "info", "warn", "error"]

#: The level of `logging` that becomes `trace`.
TRACE = 5

_LEVELS: tuple[tuple[int, Level], ...] = (
    (logging.ERROR, "error"),
    (logging.WARNING, "warn"),
    (logging.INFO, "info"),
    (logging.DEBUG, "debug"),
)
_NAMES: tuple[Level, ...] = get_args(Level)
_FOLDER = re.compile(r'File "/\d+/')
_OWN_NAMES = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def trace(message: object, /, **pairs: object) -> None:
    """Write a line of the level `trace`."""
    _write("trace", message, pairs)


def debug(message: object, /, **pairs: object) -> None:
    """Write a line of the level `debug`."""
    _write("debug", message, pairs)


def info(message: object, /, **pairs: object) -> None:
    """Write a line of the level `info`."""
    _write("info", message, pairs)


def warning(message: object, /, **pairs: object) -> None:
    """Write a line of the level `warn`."""
    _write("warn", message, pairs)


def error(message: object, /, **pairs: object) -> None:
    """Write a line of the level `error`."""
    _write("error", message, pairs)


def enabled(level: Level) -> bool:
    """Return whether the host writes lines of this level."""
    return _host.current().log_enabled(choice("level", level, _NAMES))


class HostHandler(logging.Handler):
    """Writes the records of `logging` to the host's log, while there is a host."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        if not _host.is_there():
            return
        try:
            pairs: dict[str, Any] = {k: v for k, v in vars(record).items() if k not in _OWN_NAMES}
            if record.name != "root":
                pairs["logger"] = record.name
            _write(_level_of(record.levelno), without_folders(self.format(record)), pairs)
        except Exception:
            self.handleError(record)


def without_folders(text: str) -> str:
    """Return a traceback without the folders of a component's modules, which are numbers."""
    return _FOLDER.sub('File "', text)


_handler = HostHandler()


def connect_logging() -> None:
    """Have `logging` write to the host, with the level of the host unless the plugin set another one."""
    root = logging.getLogger()
    if _handler in root.handlers:
        return
    root.addHandler(_handler)
    if root.level == logging.WARNING:
        root.setLevel(_least_level())


def disconnect_logging() -> None:
    """Undo `connect_logging`."""
    root = logging.getLogger()
    root.removeHandler(_handler)
    root.setLevel(logging.WARNING)


def _least_level() -> int:
    host = _host.current()
    if host.log_enabled("trace"):
        return TRACE
    enabled = [number for number, level in _LEVELS if host.log_enabled(level)]
    return min(enabled, default=logging.CRITICAL)


def _level_of(number: int) -> Level:
    return next((level for least, level in _LEVELS if number >= least), "trace")


def _write(level: Level, message: object, pairs: Mapping[str, object]) -> None:
    texts = {printable(name): _text(value) for name, value in pairs.items()}
    _host.current().log(level, printable(message), texts)


def _text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else printable(value)
