"""Kubernetes Events, as `kubectl events` and `kubectl describe` show them."""

from __future__ import annotations

from . import _host
from ._values import text
from .names import AnyKey, Resource, regarding_of


class EventRecorder:
    """Records Events about the objects of one resource, as the plugin's ServiceAccount.

    `regarding` is the object: a row, an event, what a write returned, a key, or a whole object as a dict.
    `reason` is one CamelCase word, such as `Restarted`; `note` has at most 1,024 bytes. The host writes
    Events in the background, and counts similar ones as one.
    """

    def __init__(self, resource: str | Resource, kind: str) -> None:
        self.resource = Resource.parse(resource)
        self.kind = text("kind", kind)

    def normal(self, regarding: AnyKey, reason: str, note: str) -> None:
        """Record an Event of the type `Normal`."""
        self._emit(False, regarding, reason, note)

    def warning(self, regarding: AnyKey, reason: str, note: str) -> None:
        """Record an Event of the type `Warning`."""
        self._emit(True, regarding, reason, note)

    def _emit(self, is_warning: bool, regarding: AnyKey, reason: str, note: str) -> None:
        about, reason, note = regarding_of(regarding), text("reason", reason), text("note", note)
        _host.current().emit(self.resource, about, self.kind, is_warning, reason, note)
