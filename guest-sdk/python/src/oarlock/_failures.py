"""Exceptions of a handler as failures of its call."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Literal, NamedTuple

from . import log
from ._durations import milliseconds
from ._values import optional_u32, printable
from .errors import (
    Failure,
    Invalid,
    LimitExceeded,
    NoHost,
    NotDeclared,
    OarlockError,
    Retry,
    Terminal,
    Throttled,
)


class CallFailure(NamedTuple):
    """What the host learns of a failed call."""

    kind: Literal["retry", "terminal"]
    message: str
    after_ms: int | None = None


#: Errors that a repeated call would meet again.
_LASTING = (Invalid, LimitExceeded, NoHost, NotDeclared)


def failure_of(error: BaseException) -> CallFailure:
    """Return the failure for an exception. An exception that no one raised on purpose is logged."""
    try:
        return _failure_of(error)
    except BaseException as other:
        # The exception itself is wrong: the plugin has changed its delay to something else, for example.
        log.error(traceback_of(other))
        return CallFailure("retry", text_of(other))


def _failure_of(error: BaseException) -> CallFailure:
    text = printable(error) or type(error).__name__
    if isinstance(error, Terminal):
        return CallFailure("terminal", text)
    if isinstance(error, Retry):
        return CallFailure("retry", text, optional_u32("after_ms", error.after_ms))
    if isinstance(error, Throttled) and error.retry_after is not None:
        return CallFailure("retry", text, milliseconds(error.retry_after))
    if isinstance(error, OarlockError):
        return CallFailure("terminal" if isinstance(error, _LASTING) else "retry", text)
    if isinstance(error, Failure):
        return CallFailure("retry", text)
    log.error(traceback_of(error))
    return CallFailure("retry", text_of(error))


def traceback_of(error: BaseException) -> str:
    """Return the traceback, without the frames of the SDK before the plugin's own."""
    own = error.__traceback__
    while own is not None and own.tb_next is not None and _is_of_the_sdk(own):
        own = own.tb_next
    text = "".join(traceback.format_exception(type(error), error, own))
    return log.without_folders(text).strip()


def last_line(error: BaseException) -> str:
    """Return the type and the message of an exception."""
    return printable("".join(traceback.format_exception_only(type(error), error)).strip())


def text_of(error: BaseException) -> str:
    """Return the text of a failure: the exception, and what to raise in place of one that ends a process."""
    if isinstance(error, Exception):
        return last_line(error)
    advice = "it ends the call, not the plugin: raise Retry, or Terminal to park the object"
    return f"{last_line(error)} ({advice})"


def _is_of_the_sdk(frame: TracebackType) -> bool:
    name = str(frame.tb_frame.f_globals.get("__name__"))
    return name == __package__ or name.startswith(f"{__package__}.")


def keep_sources() -> None:
    """Keep the lines of the modules that are imported, for tracebacks: a component has no files."""
    import linecache

    for module in [*sys.modules.values()]:
        path = getattr(module, "__file__", None)
        if path is None or path.startswith(("/python/", "/world/", "/bundled/")):
            continue
        lines = linecache.getlines(path)
        if lines:
            # Without a time of change, linecache does not look for the file again.
            linecache.cache[path] = (sum(map(len, lines)), None, lines, path)
