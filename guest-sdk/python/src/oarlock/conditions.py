"""Conditions of a watch: tests on fields of the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ._values import choice, json_text, texts
from .pointers import checked

Test = Literal["exists", "absent", "equals", "differs", "in", "not-in", "greater", "less"]


@dataclass(frozen=True)
class Condition:
    """A test on the field at a JSON pointer."""

    pointer: str
    test: Test
    #: The JSON texts that the field is compared with.
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked(self.pointer)
        choice("test", self.test, get_args(Test))
        # Stored, as another iterable can be read once only.
        object.__setattr__(self, "texts", tuple(texts("texts", self.texts)))


def _condition(pointer: str, test: Test, *values: Any) -> Condition:
    return Condition(pointer, test, tuple(json_text("value", value) for value in values))


def exists(pointer: str) -> Condition:
    """The field exists and is not null."""
    return _condition(pointer, "exists")


def absent(pointer: str) -> Condition:
    """The field does not exist, or is null."""
    return _condition(pointer, "absent")


def equals(pointer: str, value: Any) -> Condition:
    """The field exists and equals this value."""
    return _condition(pointer, "equals", value)


def differs(pointer: str, value: Any) -> Condition:
    """The field does not exist, or differs from this value."""
    return _condition(pointer, "differs", value)


def one_of(pointer: str, *values: Any) -> Condition:
    """The field exists and equals one of these values."""
    return _condition(pointer, "in", *values)


def none_of(pointer: str, *values: Any) -> Condition:
    """The field does not exist, or differs from each of these values."""
    return _condition(pointer, "not-in", *values)


def greater(pointer: str, than: float | str) -> Condition:
    """The field is a number greater than this one, or a string that sorts after this one."""
    return _condition(pointer, "greater", than)


def less(pointer: str, than: float | str) -> Condition:
    """The field is a number less than this one, or a string that sorts before this one."""
    return _condition(pointer, "less", than)
