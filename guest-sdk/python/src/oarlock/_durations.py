"""Durations: seconds, or a timedelta."""

from __future__ import annotations

import math
from datetime import timedelta

Duration = float | timedelta
"""Seconds, or a `timedelta`."""


def seconds(duration: Duration) -> float:
    """Return the number of seconds."""
    value = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(
            f"{duration!r} is not a duration: give a number of seconds, such as 30, or a timedelta, not a "
            "text such as '30s'"
        )
    if not 0 <= value < math.inf:
        raise ValueError(f"{duration!r} is not a duration: a duration is finite and not negative")
    return value


def milliseconds(duration: Duration) -> int:
    """Return the number of whole milliseconds, rounded up."""
    return -int(-seconds(duration) * 1000 // 1)
