"""The time, in whole milliseconds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from . import _host

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def now() -> datetime:
    """Return the time, in UTC."""
    seconds, nanoseconds = _host.current().now()
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def elapsed() -> float:
    """Return the seconds since this instance was created. Never decreases."""
    return _host.current().elapsed_ms() / 1000
