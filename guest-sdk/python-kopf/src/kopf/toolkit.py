"""Functions that handlers call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from oarlock import EventRecorder, Resource
from oarlock._values import printable, text

from .invocation import current_body, subhandlers
from .registry import Handler, given
from .structs import Body

_F = TypeVar("_F", bound=Callable[..., Any])
Objects = MutableMapping[str, Any] | Iterable[MutableMapping[str, Any]]

#: The host refuses a longer message of an Event.
MAX_MESSAGE_BYTES = 1024

#: The resources of the operator, by group and kind's lower-case name or plural.
resources: dict[tuple[str, str], Resource] = {}


def event(objs: Any, *, type: str, reason: str, message: str = "") -> None:
    """Record a Kubernetes Event about one object, or several."""
    for body in _each(objs):
        group = str(body.get("apiVersion", "")).rpartition("/")[0]
        kind = str(body.get("kind", ""))
        resource = resources.get((group, kind.lower())) or _guess(body)
        recorder = EventRecorder(resource, kind)
        record = recorder.warning if type == "Warning" else recorder.normal
        record(body, reason, _cut(text("message", message)))


def info(objs: Any, *, reason: str, message: str = "") -> None:
    """Record an Event of the type `Normal`."""
    event(objs, type="Normal", reason=reason, message=message)


def warn(objs: Any, *, reason: str, message: str = "") -> None:
    """Record an Event of the type `Warning`."""
    event(objs, type="Warning", reason=reason, message=message)


def exception(objs: Any, *, reason: str = "", message: str = "", exc: BaseException | None = None) -> None:
    """Record an Event of the type `Warning` with the exception that is handled."""
    shown = exc if exc is not None else _handled()
    text_of_both = f"{printable(message)} {printable(shown)}".strip()
    event(objs, type="Warning", reason=reason or type(shown).__name__, message=text_of_both)


def adopt(objs: Objects, owner: Mapping[str, Any] | None = None) -> None:
    """Make objects children of the handled one: owner reference, name, namespace, labels."""
    parent = Body(owner) if owner is not None else current_body.get()
    reference = {
        "controller": True,
        "blockOwnerDeletion": True,
        "apiVersion": parent["apiVersion"],
        "kind": parent["kind"],
        "name": parent.metadata.name,
        "uid": parent.metadata.uid,
    }
    for body in _each(objs):
        metadata = body.setdefault("metadata", {})
        others = [it for it in metadata.get("ownerReferences", []) if it["uid"] != reference["uid"]]
        metadata["ownerReferences"] = [*others, reference]
        if "name" not in metadata and "generateName" not in metadata:
            metadata["generateName"] = f"{parent.metadata.name}-"
        if parent.metadata.namespace:
            metadata.setdefault("namespace", parent.metadata.namespace)
        labels = metadata.setdefault("labels", {})
        for name, value in parent.metadata.labels.items():
            labels.setdefault(name, value)


def subhandler(*, id: str | None = None, **options: Any) -> Callable[[_F], _F]:
    """Add a handler that runs after the running one, and is retried by itself."""
    options = given(options)

    def decorate(function: _F) -> _F:
        own = id if id is not None else function.__name__
        subhandlers.get().append(Handler(function, own, "field", "", **options))
        return function

    return decorate


def _cut(message: str) -> str:
    """Return the longest beginning of a message that the host accepts, which counts bytes of UTF-8."""
    return message.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")


def _each(objs: Any) -> Iterator[Any]:
    yield from [objs] if isinstance(objs, Mapping) else objs


def _handled() -> BaseException | None:
    return sys.exc_info()[1]


def _guess(body: Mapping[str, Any]) -> Resource:
    return Resource.parse(f"{body['apiVersion']}/{str(body['kind']).lower()}s")
