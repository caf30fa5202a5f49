"""The plugin's own metrics, on the host's metrics page as `oarlock_guest_NAME{plugin="…"}`."""

from __future__ import annotations

from . import _host
from ._values import labels as checked_labels
from ._values import number, text


class Counter:
    """A value that only increases. Its series has the suffix `_total`."""

    def __init__(self, name: str) -> None:
        self.name = text("name", name)

    def inc(self, by: float = 1.0, /, **labels: str) -> None:
        """Increase the counter of these labels."""
        _host.current().counter_add(self.name, number("by", by), checked_labels(labels))


class Gauge:
    """A value that goes up and down."""

    def __init__(self, name: str) -> None:
        self.name = text("name", name)

    def set(self, value: float, /, **labels: str) -> None:
        """Set the gauge of these labels."""
        _host.current().gauge_set(self.name, number("value", value), checked_labels(labels))
