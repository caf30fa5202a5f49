"""Durations: seconds, or a timedelta."""

from __future__ import annotations

import math
from datetime import timedelta

from ._values import MAX_U32

Duration = float | timedelta
"""Seconds, or a `timedelta`."""


def seconds(duration: Duration) -> float:
    """Return the number of seconds."""
    value = _number(duration)
    if not 0 <= value < math.inf:
        raise ValueError(f"{duration!r} is not a duration: a duration is finite and not negative")
    return value


def milliseconds(duration: Duration) -> int:
    """Return the number of whole milliseconds, rounded up, and at most 49 days."""
    return math.ceil(min(seconds(duration) * 1000, MAX_U32))


def whole_seconds(what: str, duration: Duration, least: int = 0, most: int = MAX_U32) -> int:
    """Return the number of seconds, which is whole and within these bounds."""
    value = _number(duration)
    if not (least <= value <= most and value == int(value)):
        raise ValueError(f"{what}={duration!r} is not allowed: give whole seconds, {least} to {most}")
    return int(value)


def _number(duration: Duration) -> float:
    value = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(
            f"{duration!r} is not a duration: give a number of seconds, such as 30, or a timedelta, not a "
            "text such as '30s'"
        )
    return value
