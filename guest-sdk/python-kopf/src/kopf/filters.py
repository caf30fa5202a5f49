"""Whether a handler is for an object, and for a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .registry import Handler
from .structs import ABSENT, PRESENT, diff, resolve


def is_for(handler: Handler, kwargs: Mapping[str, Any]) -> bool:
    """Return whether the filters of a handler match an object."""
    return (
        _all_match(handler.labels, kwargs["labels"], kwargs)
        and _all_match(handler.annotations, kwargs["annotations"], kwargs)
        and _field_matches(handler, kwargs)
        and (handler.when is None or bool(handler.when(**kwargs)))
    )


def _field_matches(handler: Handler, kwargs: Mapping[str, Any]) -> bool:
    if handler.field is None:
        return True
    old, new = (resolve(kwargs.get(state), handler.field) for state in ("old", "new"))
    current = resolve(kwargs["body"], handler.field)
    if handler.reason in ("update", "field"):
        either = handler.value is None or any(_matches(handler.value, it, kwargs) for it in (old, new))
        was = handler.old is None or _matches(handler.old, old, kwargs)
        becomes = handler.new is None or _matches(handler.new, new, kwargs)
        return bool(diff(old, new)) and either and was and becomes
    return _matches(PRESENT if handler.value is None else handler.value, current, kwargs)


def _all_match(wanted: Mapping[str, Any] | None, found: Mapping[str, str], kwargs: Mapping[str, Any]) -> bool:
    return all(_matches(value, found.get(name), kwargs) for name, value in (wanted or {}).items())


def _matches(wanted: Any, found: Any, kwargs: Mapping[str, Any]) -> bool:
    if wanted is PRESENT:
        return found is not None
    if wanted is ABSENT:
        return found is None
    if callable(wanted):
        return bool(wanted(found, **{name: value for name, value in kwargs.items() if name != "value"}))
    return bool(wanted == found)
