"""An object whose parts are read from the host when they are looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from ._values import is_unicode
from .pointers import parsed, pointer


class LazyObject(Mapping[str, Any]):
    """A read-only mapping over a JSON object of the host.

    `event.object["metadata"]["labels"]["app"]` reads these three parts and parses the last one only. Looking
    at all parts (a loop, `len`, `==`) parses the object once. `to_dict` returns it as a plain dict.
    """

    __slots__ = ("_path", "_read", "_text", "_whole")

    def __init__(self, read: Callable[[str], str | None], path: str = "", text: str | None = None) -> None:
        self._read = read
        self._path = path
        self._text = text
        self._whole: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict, parsed once; the same one each time."""
        if self._whole is None:
            text = self._read(self._path) if self._text is None else self._text
            self._whole = json.loads(text or "{}")
        return self._whole

    def __getitem__(self, name: str) -> Any:
        if self._whole is not None:
            return self._whole[name]
        if not _may_be_there(name):
            raise KeyError(name)
        path = self._path + pointer(name)
        text = self._read(path)
        if text is None:
            raise KeyError(name)
        return LazyObject(self._read, path, text) if text.startswith("{") else parsed(text)

    def __contains__(self, name: object) -> bool:
        if self._whole is not None:
            return name in self._whole
        return _may_be_there(name) and self._read(self._path + pointer(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __repr__(self) -> str:
        return f"LazyObject({self.to_dict()!r})"


def _may_be_there(name: object) -> TypeGuard[str]:
    """Return whether a JSON object can have this name."""
    return isinstance(name, str) and (name.isascii() or is_unicode(name))
