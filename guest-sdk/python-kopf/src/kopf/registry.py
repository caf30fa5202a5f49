"""The decorators, and the handlers that they register."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar

from oarlock._values import finite, number, text

from .structs import LONGEST_DELAY, ErrorsMode

Reason = Literal["create", "update", "delete", "resume", "field", "event", "timer", "index", "startup"]
Function = Callable[..., Any]
_F = TypeVar("_F", bound=Function)

#: What this package does not have, and why.
_MISSING = {
    "daemon": "a daemon would outlive its call; a timer is called again and again",
    "on.cleanup": "a plugin is not called at its end",
    "on.login": "the host logs in",
    "on.mutate": "Oarlock has no admission webhooks",
    "on.validate": "Oarlock has no admission webhooks",
}


@dataclass(frozen=True)
class Handler:
    """A registered function."""

    function: Function
    id: str
    reason: Reason
    resource: str
    param: Any = None
    errors: ErrorsMode = ErrorsMode.TEMPORARY
    retries: float | None = None
    timeout: float | None = None
    backoff: float = 60.0
    labels: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    when: Callable[..., bool] | None = None
    field: tuple[str, ...] | None = None
    value: Any = None
    old: Any = None
    new: Any = None
    optional: bool = False
    deleted: bool = False
    interval: float | None = None
    initial_delay: float = 0.0
    idle: float | None = None
    sharp: bool = False

    def __post_init__(self) -> None:
        text("id", self.id)
        for name in ("retries", "timeout"):
            self._store(name, number)
        for name in ("backoff", "interval", "initial_delay", "idle"):
            self._store(name, _seconds)

    def _store(self, name: str, checked: Callable[[str, Any], float]) -> None:
        value = getattr(self, name)
        if value is not None:
            # The float, as the value may be a number that does not mix with floats, such as a Decimal.
            object.__setattr__(self, name, checked(name, value))


def _seconds(name: str, value: Any) -> float:
    return max(-LONGEST_DELAY, min(finite(name, value), LONGEST_DELAY))


#: The handlers, in the order of their registration.
handlers: list[Handler] = []

_OPTIONS = {field.name for field in dataclasses.fields(Handler)} - {"function", "reason", "resource"}


def _resource_of(args: Sequence[str], options: dict[str, Any]) -> str:
    named = [options.pop(name, None) for name in ("group", "version", "kind", "plural", "singular")]
    parts = [part for part in (*args, *named) if part]
    if not parts:
        raise TypeError("the decorator names no resource")
    return "/".join(text("resource", part) for part in parts)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given, with the field as its parts."""
    found = {name: value for name, value in options.items() if value is not None}
    if "field" in found:
        field = found["field"]
        found["field"] = tuple(field.split(".")) if isinstance(field, str) else tuple(field)
    return found


def register(reason: Reason, *args: str, **options: Any) -> Callable[[_F], _F]:
    """Return a decorator that registers a function."""
    resource = "" if reason == "startup" else _resource_of(args, options)
    unknown = options.keys() - _OPTIONS - {"category", "subresource"}
    if unknown:
        raise TypeError(f"{sorted(unknown)[0]!r} is not an option that this package knows")
    options = given(options)

    def decorate(function: _F) -> _F:
        own = dict(options)
        suffix = "/" + ".".join(own["field"]) if "field" in own else ""
        own.setdefault("id", getattr(function, "__name__", "handler") + suffix)
        handlers.append(Handler(function, reason=reason, resource=resource, **own))
        return function

    return decorate


class On:
    """The decorators `kopf.on.…`."""

    create = staticmethod(functools.partial(register, "create"))
    update = staticmethod(functools.partial(register, "update"))
    delete = staticmethod(functools.partial(register, "delete"))
    resume = staticmethod(functools.partial(register, "resume"))
    field = staticmethod(functools.partial(register, "field"))
    event = staticmethod(functools.partial(register, "event"))
    startup = staticmethod(functools.partial(register, "startup"))

    @staticmethod
    def probe(*_: Any, **__: Any) -> Callable[[_F], _F]:
        """Accept a function, which is not called: the host answers probes itself."""
        return lambda function: function

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"on.{name}")


def timer(*args: str, interval: float | None = None, **options: Any) -> Callable[[_F], _F]:
    """Call a function for each object, again and again."""
    return register("timer", *args, interval=interval, **options)


def index(*args: str, **options: Any) -> Callable[[_F], _F]:
    """Call a function for each object, and keep what it returns for other handlers."""
    return register("index", *args, **options)


def daemon(*_: Any, **__: Any) -> NoReturn:
    """Refuse daemons."""
    _refuse("daemon")


def _refuse(name: str) -> NoReturn:
    if name not in _MISSING and name.startswith("on.__"):
        raise AttributeError(name)
    raise NotImplementedError(
        f"kopf.{name} does not work in an Oarlock plugin: {_MISSING.get(name, 'unknown')}"
    )


on = On()
