"""Durations: seconds, or a timedelta."""

from __future__ import annotations

from datetime import timedelta

Duration = float | timedelta
"""Seconds, or a `timedelta`."""


def seconds(duration: Duration) -> float:
    """Return the number of seconds."""
    value = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if value < 0:
        raise ValueError(f"a duration is not negative, as {duration!r} is")
    return value


def milliseconds(duration: Duration) -> int:
    """Return the number of whole milliseconds, rounded up."""
    return -int(-seconds(duration) * 1000 // 1)
