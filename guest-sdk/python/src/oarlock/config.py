"""The operator's configuration: the value of `config` in the plugin's file. It does not change."""

from __future__ import annotations

import json
from typing import Any

from . import _host
from ._values import text
from .pointers import parsed


def get(pointer: str, default: Any = None) -> Any:
    """Return the value at a JSON pointer, such as `/labelSelector`, or the default if there is none."""
    value = parsed(_host.current().config_get(text("pointer", pointer)))
    return default if value is None else value


def all() -> dict[str, Any]:
    """Return the whole configuration."""
    value: dict[str, Any] = json.loads(_host.current().config_json())
    return value
