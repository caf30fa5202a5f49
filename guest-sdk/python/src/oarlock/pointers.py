"""JSON pointers (RFC 6901), and dataclasses whose fields are declared by them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._values import parts, text, texts

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    F = TypeVar("F", default=dict[str, Any])
else:
    from typing import TypeVar

    F = TypeVar("F")

FieldsOf = type[F] | Sequence[str]
"""Declared fields: a dataclass whose fields are made with `at`, or a list of pointers."""

_POINTER = "oarlock.pointer"


def pointer(*parts: str) -> str:
    """Return the JSON pointer with these parts: `pointer("data", "a/b")` is `/data/a~1b`."""
    return "".join("/" + text("part", part).replace("~", "~0").replace("/", "~1") for part in parts)


def label(name: str) -> str:
    """Return the JSON pointer to a label."""
    return pointer("metadata", "labels", text("name", name))


def annotation(name: str) -> str:
    """Return the JSON pointer to an annotation."""
    return pointer("metadata", "annotations", text("name", name))


def checked(given: str) -> str:
    """Return a pointer as it is, if it is one, and not the empty one."""
    path = text("pointer", given)
    valid = path.startswith("/") and all(tail[:1] in ("0", "1") for tail in path.split("~")[1:])
    if not valid:
        raise ValueError(
            f"{path!r} is not a JSON pointer to a field: write '/metadata/labels/app'; "
            "in a name, '~1' stands for '/' and '~0' for '~'"
        )
    return path


def _all_checked(given: list[Any]) -> list[str]:
    # Each read of the cache comes here.
    try:
        return [checked(path) for path in given]
    except (TypeError, ValueError) as error:
        failed = error
    # Names the one that is no text.
    texts("fields", given)
    raise failed


def at(path: str, *, default: Any = None, default_factory: Callable[[], Any] | None = None) -> Any:
    """Declare a field of a dataclass: the value at a JSON pointer.

    An object that lacks the field, or has null there, has the default. Values have the type that the object
    has; they are not checked against the annotation.
    """
    metadata = {_POINTER: checked(path)}
    if default_factory is not None:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Shape:
    """How the values at a list of pointers become the `fields` of an event or a row."""

    __slots__ = ("make", "pointers")

    def __init__(self, fields: type[Any] | Sequence[str]) -> None:
        if isinstance(fields, str):
            raise TypeError(f"fields is a list of pointers: write [{fields!r}]")
        if isinstance(fields, type):
            names, self.pointers = _declared(fields)
            cls = fields

            def make(values: Iterable[str | None]) -> Any:
                found = {}
                for name, text in zip(names, values, strict=True):
                    value = parsed(text)
                    if value is not None:
                        found[name] = value
                return cls(**found)

        else:
            self.pointers = _all_checked(parts("fields", fields, "a dataclass, or a list of JSON pointers"))
            pointers = self.pointers

            def make(values: Iterable[str | None]) -> Any:
                return dict(zip(pointers, map(parsed, values), strict=True))

        #: Makes `fields` from JSON texts.
        self.make = make


def parsed(text: str | None) -> Any:
    """Return the value of a JSON text; None if there is none."""
    if text is None:
        return None
    if text.startswith('"') and "\\" not in text:
        # Most fields are such strings.
        return text[1:-1]
    return json.loads(text)


def _declared(cls: type[Any]) -> tuple[list[str], list[str]]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is not a dataclass: write @dataclass above it")
    names, pointers = [], []
    for field in dataclasses.fields(cls):
        path = field.metadata.get(_POINTER)
        if path is None:
            raise TypeError(
                f"{cls.__name__}.{field.name} has no pointer: write "
                f"`{field.name}: … = at('/spec/{field.name}')`"
            )
        names.append(field.name)
        pointers.append(cast(str, path))
    if not names:
        raise TypeError(f"{cls.__name__} has no fields")
    return names, pointers
