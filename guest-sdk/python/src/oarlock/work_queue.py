"""The plugin's work queue, with whose keys the host calls the functions with `reconcile`."""

from __future__ import annotations

from . import _host
from ._durations import Duration, milliseconds
from .names import WorkKey, checked_work_key


def add(key: WorkKey, *, after: Duration | None = None) -> None:
    """Add a key, unless it waits already. Of two delays for one key, the one that ends first counts.

    After at most 49 days the host reconciles the key, also for a longer delay.
    """
    _host.current().queue_add(checked_work_key("key", key), None if after is None else milliseconds(after))
