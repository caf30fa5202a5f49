"""Label selectors, conditions and JSON pointers on objects in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..conditions import Condition

MISSING = object()

_REQUIREMENT = re.compile(
    r"(?P<set>[^\s,=!()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<name>[^\s,=!()]+)\s*(?P<equal>==|=|!=)\s*(?P<value>[^\s,=!()]*)"
    r"|(?P<not>!?)\s*(?P<key>[^\s,=!()]+)"
)


def resolve(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer, or `MISSING`."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def text_at(value: Any, pointer: str) -> str | None:
    """Return the JSON text at a pointer, or None."""
    found = resolve(value, pointer)
    return None if found is MISSING else json.dumps(found)


def scalars(value: Any, pointer: str) -> Iterator[str]:
    """Return the scalars at a pointer of an index, as text; `*` stands for every element of a list."""
    head, star, tail = pointer.partition("/*")
    found = resolve(value, head)
    if star:
        for element in found if isinstance(found, list) else []:
            yield from scalars(element, tail)
    elif isinstance(found, str):
        yield found
    elif isinstance(found, bool | int | float):
        yield json.dumps(found)


def labels_match(selector: str, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector in the syntax of Kubernetes."""
    rest = selector.strip()
    while rest:
        match = _REQUIREMENT.match(rest)
        if match is None:
            raise ValueError(f"{selector!r} is not a label selector")
        if not _requirement_holds(match, labels):
            return False
        rest = rest[match.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise ValueError(f"{selector!r} is not a label selector")
        rest = rest[1:].lstrip()
    return True


def _requirement_holds(match: re.Match[str], labels: Mapping[str, str]) -> bool:
    if match["set"]:
        is_in = labels.get(match["set"]) in [value.strip() for value in match["values"].split(",")]
        return is_in == (match["op"] == "in")
    if match["name"]:
        return (labels.get(match["name"]) == match["value"]) == (match["equal"] != "!=")
    return (match["key"] in labels) != bool(match["not"])


def condition_holds(condition: Condition, value: Any) -> bool:
    """Return whether an object passes a test on one of its fields."""
    found = resolve(value, condition.pointer)
    is_there = found is not MISSING and found is not None
    values = [json.loads(text) for text in condition.texts]
    match condition.test:
        case "exists":
            return is_there
        case "absent":
            return not is_there
        case "equals" | "in":
            return is_there and found in values
        case "differs" | "not-in":
            return not is_there or found not in values
        case "greater" | "less":
            return _sorts(found, values[0], condition.test == "greater")


def _sorts(found: Any, other: Any, greater: bool) -> bool:
    if isinstance(found, str) and isinstance(other, str):
        first, second = found.encode(), other.encode()
        return first > second if greater else first < second
    are_numbers = not isinstance(found, bool) and isinstance(found, int | float)
    return are_numbers and not isinstance(other, str) and (found > other if greater else found < other)
