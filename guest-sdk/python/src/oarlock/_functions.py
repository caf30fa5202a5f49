"""Checks of the functions that a plugin registers: a mistake fails the build, not the first call."""

from __future__ import annotations

import inspect
from typing import Any


def check(function: Any, decorator: str, *arguments: str) -> None:
    """Raise `TypeError` unless a function can be called with these arguments, which the message names."""
    name = getattr(function, "__qualname__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{name} is async, and a plugin has no event loop: write `def` without `async`")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Written in C.
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        called = f"{name}({', '.join(arguments)})"
        raise TypeError(f"{decorator} calls {called}, which its parameters do not fit: {error}") from None
