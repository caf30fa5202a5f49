"""The notifications that a handler receives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from . import _host
from ._values import text
from .errors import OarlockError
from .lazy import LazyObject
from .names import Versioned
from .pointers import F, Shape, parsed

_T = TypeVar("_T")


class State(Generic[F]):
    """A state of the object, which is read from the host field by field."""

    __slots__ = ("_event", "_fields", "_is_old", "_shape", "_texts")

    def __init__(
        self, event: Event[F] | None, shape: Shape | None, texts: Sequence[str | None], is_old: bool
    ) -> None:
        self._event: Event[F] = event or self  # type: ignore[assignment]
        self._shape = shape
        self._texts = texts
        self._is_old = is_old
        self._fields: F | None = None

    @property
    def fields(self) -> F:
        """The values of the fields that the watch declares."""
        if self._fields is None:
            self._fields = self._read_declared()
        return self._fields

    @property
    def object(self) -> LazyObject:
        """The object, of which each part is read when it is looked at."""
        return LazyObject(self._text)

    def field(self, pointer: str, default: Any = None) -> Any:
        """Return the value at a JSON pointer, or the default if the object lacks it."""
        found = self._host().event_field(self._is_old, text("pointer", pointer))
        return default if found is None else parsed(found)

    @overload
    def read(self, fields: type[_T]) -> _T: ...

    @overload
    def read(self, fields: Sequence[str]) -> dict[str, Any]: ...

    def read(self, fields: Any) -> Any:
        """Return several fields, declared or not, in one call of the host."""
        shape = Shape(fields)
        return shape.make(self._host().event_fields(self._is_old, shape.pointers))

    def json(self) -> dict[str, Any]:
        """Return the whole object."""
        value: dict[str, Any] = json.loads(self._host().event_json(self._is_old))
        return value

    def _text(self, pointer: str) -> str | None:
        if not pointer:
            return self._host().event_json(self._is_old)
        return self._host().event_field(self._is_old, pointer)

    def _read_declared(self) -> Any:
        shape = self._shape
        if shape is None:
            return {}
        texts = self._texts
        if not texts:
            # Together they exceed 1 MiB, so the notification carries none.
            texts = [self._text(pointer) for pointer in shape.pointers]
        return shape.make(texts)

    def _host(self) -> _host.Host:
        if _in_progress is not self._event:
            raise OarlockError(
                f"the call about {self._event.namespace}/{self._event.name} is over: a handler reads what it "
                "needs of an event before it returns"
            )
        return _host.current()


class Event(State[F]):
    """What all notifications about an object have."""

    __slots__ = ("name", "namespace", "resource_version", "subscription", "uid")

    def __init__(
        self,
        subscription: str,
        ref: Versioned,
        shape: Shape | None,
        texts: Sequence[str | None],
        is_old: bool,
    ) -> None:
        super().__init__(None, shape, texts, is_old)
        #: The name of the watch.
        self.subscription = subscription
        self.namespace = ref.namespace
        self.name = ref.name
        self.uid = ref.uid
        self.resource_version = ref.resource_version

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.subscription!r}, {self.namespace!r}, {self.name!r})"


class Added(Event[F]):
    """An object exists, was created, or began to match the watch."""

    __slots__ = ("is_in_initial_list",)

    def __init__(
        self,
        subscription: str,
        ref: Versioned,
        shape: Shape | None,
        texts: Sequence[str | None],
        is_in_initial_list: bool,
    ) -> None:
        super().__init__(subscription, ref, shape, texts, is_old=False)
        #: True for an object that existed before the plugin watched, or that it may see only now.
        self.is_in_initial_list = is_in_initial_list


class Updated(Event[F]):
    """An object changed, or a resync delivers it again."""

    __slots__ = ("old", "old_resource_version", "old_uid")

    def __init__(
        self,
        subscription: str,
        ref: Versioned,
        shape: Shape | None,
        texts: Sequence[str | None],
        old_texts: Sequence[str | None],
        old_resource_version: str,
        old_uid: str | None,
    ) -> None:
        super().__init__(subscription, ref, shape, texts, is_old=False)
        #: The state before the change.
        self.old: State[F] = State(self, shape, old_texts, is_old=True)
        self.old_resource_version = old_resource_version
        #: The uid of the old state, if the object was deleted and created again.
        self.old_uid = old_uid

    @property
    def is_resync(self) -> bool:
        """Whether a resync delivers the object again, without a change."""
        return self.old_uid is None and self.old_resource_version == self.resource_version


class Deleted(Event[F]):
    """An object was deleted, or ceased to match the watch. Its state is the last that the host knows."""

    __slots__ = ("final_state_unknown",)

    def __init__(
        self,
        subscription: str,
        ref: Versioned,
        shape: Shape | None,
        texts: Sequence[str | None],
        final_state_unknown: bool,
    ) -> None:
        super().__init__(subscription, ref, shape, texts, is_old=True)
        #: True if the host missed the delete: the last known state may be stale.
        self.final_state_unknown = final_state_unknown


class Synced:
    """All initial adds of a watch have been handled."""

    __slots__ = ("remaining", "subscription")

    def __init__(self, subscription: str, remaining: int) -> None:
        #: The name of the watch.
        self.subscription = subscription
        #: The number of the plugin's watches that have not synced yet.
        self.remaining = remaining


_in_progress: object | None = None


def begin(event: object | None) -> None:
    """Note the event whose call is in progress; None when the call ends."""
    global _in_progress
    _in_progress = event
