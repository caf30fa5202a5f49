"""Values that a plugin gives to the host: checks of their types, with errors that name the argument.

The bindings end the instance when they get a value of another type than the contract's, or a text that UTF-8
cannot encode. So each public function of the SDK passes its arguments through this module, which knows
neither host: a unit test raises the same errors. A value of a wrong type raises a `TypeError`, a value out of
its range a `ValueError`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")

#: The greatest number of the contract.
MAX_U32 = 2**32 - 1

_A_U32 = f"a whole number, 0 to {MAX_U32}"

# The length of a value in a message.
_LONGEST_SHOWN = 100


def text(name: str, value: Any) -> str:
    """Return a text, if it is one that UTF-8 can encode."""
    if isinstance(value, str):
        if value.isascii() or is_unicode(value):
            return value
        raise ValueError(f"{name}={shown(value)} is not allowed: half of a surrogate pair is not Unicode")
    raise _type_error(name, value, "a str")


def optional_text(name: str, value: Any) -> str | None:
    """Return a text, or None."""
    if value is None or isinstance(value, str):
        return None if value is None else text(name, value)
    raise _type_error(name, value, "a str or None")


def parts(name: str, value: Any, expected: str) -> list[Any]:
    """Return a list, which may be given as another iterable."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _type_error(name, value, expected)
    return [*value]


def texts(name: str, value: Any, expected: str = "a list of str") -> list[str]:
    """Return a list of texts."""
    return [text(f"{name}[{at}]", part) for at, part in enumerate(parts(name, value, expected))]


def labels(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a metric."""
    return {text("the name of a label", name): text(name, part) for name, part in value.items()}


def boolean(name: str, value: Any) -> bool:
    """Return a bool."""
    if isinstance(value, bool):
        return value
    raise _type_error(name, value, "True or False")


def u32(name: str, value: Any) -> int:
    """Return a whole number of 32 bits."""
    if isinstance(value, bool):
        raise _type_error(name, value, _A_U32)
    try:
        # Also of a whole number of another library.
        found = operator.index(value)
    except TypeError:
        raise _type_error(name, value, _A_U32) from None
    if 0 <= found <= MAX_U32:
        return found
    raise ValueError(f"{name}={shown(value)} is not allowed: give {_A_U32}")


def optional_u32(name: str, value: Any) -> int | None:
    """Return a whole number of 32 bits, or None."""
    return None if value is None else u32(name, value)


def number(name: str, value: Any) -> float:
    """Return a number as a float."""
    if not hasattr(value, "__float__"):
        raise _type_error(name, value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)} is not allowed: it is too large for a float") from None


def finite(name: str, value: Any) -> float:
    """Return a number that is neither NaN nor infinite."""
    found = number(name, value)
    if math.isfinite(found):
        return found
    raise ValueError(f"{name}={shown(value)} is not allowed: give a finite number")


def choice(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return one of the allowed texts."""
    if isinstance(value, str) and value in allowed:
        return value
    expected = f"one of {', '.join(map(repr, allowed))}"
    if isinstance(value, str):
        raise ValueError(f"{name}={shown(value)} is not allowed: give {expected}")
    raise _type_error(name, value, expected)


def instance(name: str, value: Any, cls: type[_T] | tuple[type[_T], ...], expected: str) -> _T:
    """Return an object of a class of the SDK, or of one of several."""
    if isinstance(value, cls):
        return value
    raise _type_error(name, value, expected)


def instances(name: str, value: Any, cls: type[_T], expected: str) -> list[_T]:
    """Return a list of objects of a class of the SDK."""
    found = parts(name, value, expected)
    return [instance(f"{name}[{at}]", part, cls, expected) for at, part in enumerate(found)]


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return a mapping, such as a whole object."""
    if isinstance(value, Mapping):
        return value
    raise _type_error(name, value, "a dict")


def _type_error(name: str, value: Any, expected: str) -> TypeError:
    return TypeError(f"{name}={shown(value)} is not allowed: give {expected}")


def json_text(name: str, value: Any) -> str:
    """Return a value as JSON text."""
    try:
        encoded = _ENCODER.encode(value)
        if encoded.isascii() or is_unicode(encoded):
            return encoded
        reason = "half of a surrogate pair is not Unicode"
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    try:
        _check_json(name, value, ())
    except RecursionError:
        pass
    except (TypeError, ValueError) as error:
        # Without a frame for each level of the value.
        raise error.with_traceback(None) from None
    raise ValueError(f"{name} is not JSON: {reason}")


def is_unicode(value: str) -> bool:
    """Return whether UTF-8 can encode a text: whether it has no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(value: Any) -> str:
    """Return any value as a text that UTF-8 can encode. Never raises.

    Halves of a surrogate pair that belong together become their character, and others U+FFFD.
    """
    try:
        found = value if isinstance(value, str) else str(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose __str__ raises {type(error).__name__}>"
    if found.isascii() or is_unicode(found):
        return found
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(value: Any) -> str:
    """Return what a message says of a value. Never raises."""
    try:
        found = repr(value)
    except Exception:
        found = f"<{type(value).__name__}>"
    return printable(found if len(found) <= _LONGEST_SHOWN else f"{found[: _LONGEST_SHOWN - 1]}…")


def _plain(value: Any) -> Any:
    """Return a mapping that is not a dict, such as a `LazyObject`, as a dict."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{shown(value)} is not JSON")


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)


def _check_json(path: str, value: Any, parents: tuple[Any, ...]) -> None:
    """Raise an error that names the part of a value that is not JSON."""
    if isinstance(value, str):
        text(path, value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path}={value!r} is not JSON: give a finite number")
    elif isinstance(value, Mapping | list | tuple):
        if any(value is parent for parent in parents):
            raise ValueError(f"{path} is not JSON: it contains itself")
        parents = (*parents, value)
        if isinstance(value, Mapping):
            for name, part in value.items():
                _check_name(path, name)
                _check_json(f"{path}[{name!r}]", part, parents)
        else:
            for at, part in enumerate(value):
                _check_json(f"{path}[{at}]", part, parents)
    elif value is not None and not isinstance(value, int | float):
        raise TypeError(
            f"{path}={shown(value)} is not JSON: give a dict, list, str, int, float, bool or None"
        )


def _check_name(path: str, name: Any) -> None:
    if isinstance(name, str):
        text(f"a name in {path}", name)
    elif name is not None and not isinstance(name, int | float):
        raise TypeError(f"the name {shown(name)} in {path} is not JSON: give a str")
