"""Reads of the cache that all plugins share. No function here sends a request to the API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, overload

from . import _host
from ._durations import Duration, milliseconds
from ._host import RawPage, RawRow
from ._values import boolean, instance, optional_text, text
from .errors import NotFound
from .names import AnyKey, HasVersion, Resource, key_of, version_of
from .pointers import F, FieldsOf, Shape

if TYPE_CHECKING:
    import builtins


class Row(Generic[F]):
    """An object in an answer: its names, and the fields that were asked for."""

    __slots__ = ("fields", "name", "namespace", "resource_version", "uid")

    def __init__(self, namespace: str, name: str, uid: str, resource_version: str, fields: F) -> None:
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.resource_version = resource_version
        #: The values of the fields that were asked for.
        self.fields = fields

    def __repr__(self) -> str:
        return f"Row({self.namespace!r}, {self.name!r}, {self.fields!r})"


class Reader:
    """Makes rows, or whole objects, from answers."""

    __slots__ = ("_make", "projection")

    def __init__(self, fields: type[Any] | Sequence[str] | None) -> None:
        shape = None if fields is None else Shape(fields)
        self._make = None if shape is None else shape.make
        self.projection = None if shape is None else shape.pointers

    def read(self, row: RawRow) -> Any:
        """Return the object, as a dict, or the row."""
        if self._make is None:
            return json.loads(row.json or "null")
        return Row(*row.ref, self._make(row.fields))

    def pages(self, fetch: Callable[[str], RawPage]) -> Iterator[Any]:
        """Return what all pages have, and fetch a page when it is needed."""
        token = ""
        while True:
            rows, token = fetch(token)
            for row in rows:
                yield self.read(row)
            if not token:
                return


class Lister:
    """A declared reader of one resource; see `Plugin.lister`."""

    def __init__(
        self,
        declare_index: Callable[[Index], None],
        name: str,
        resource: Resource,
        namespace: str | None,
        metadata_only: bool,
        wakes: bool,
    ) -> None:
        self.name = name
        self.resource = resource
        self.namespace = namespace
        self.metadata_only = metadata_only
        self.wakes = wakes
        self._declare_index = declare_index
        self.check()

    def check(self) -> None:
        """Raise an error for a part of the declaration that the host cannot take."""
        what = f"lister {text('name', self.name)!r}"
        instance(f"{what}: resource", self.resource, Resource, "a Resource")
        optional_text(f"{what}: namespace", self.namespace)
        boolean(f"{what}: metadata_only", self.metadata_only)
        boolean(f"{what}: wakes", self.wakes)

    def index(
        self, name: str, *, label: str | None = None, pointer: str | None = None, owner_uid: bool = False
    ) -> Index:
        """Declare an index by the value of a label, the scalar at a pointer, or the uids of the owners.

        In the pointer, a segment `*` stands for every element of a list.
        """
        index = Index(name, self, label, pointer, owner_uid)
        self._declare_index(index)
        return index

    @overload
    def get(self, key: AnyKey) -> dict[str, Any] | None: ...

    @overload
    def get(self, key: AnyKey, *, fields: FieldsOf[F]) -> Row[F] | None: ...

    def get(self, key: AnyKey, *, fields: Any = None) -> Any:
        """Return one object, or None if the cache has no object of that name."""
        reader = Reader(fields)
        try:
            row = _host.current().cache_get(self.name, key_of(key), reader.projection)
        except NotFound:
            return None
        return reader.read(row)

    @overload
    def list(self, *, namespace: str | None = ..., label_selector: str = ...) -> Iterator[dict[str, Any]]: ...

    @overload
    def list(
        self, *, namespace: str | None = ..., label_selector: str = ..., fields: FieldsOf[F]
    ) -> Iterator[Row[F]]: ...

    def list(
        self, *, namespace: str | None = None, label_selector: str = "", fields: Any = None
    ) -> Iterator[Any]:
        """Return the objects whose labels match the selector, ordered by key, and read page after page.

        Without `namespace`: those of all namespaces that the plugin's account may read.
        """
        reader, host = Reader(fields), _host.current()
        chosen, selector = optional_text("namespace", namespace), text("label_selector", label_selector)
        return reader.pages(
            lambda token: host.cache_list(self.name, chosen, selector, reader.projection, token)
        )

    def has_synced(self) -> bool:
        """Return whether the cache contains the whole first list."""
        return _host.current().cache_has_synced(self.name)

    def wait_until_seen(self, written: HasVersion | Mapping[str, Any], *, timeout: Duration = 5.0) -> None:
        """Wait until the cache has what a write returned, or raise `Timeout` (after 5 s at most).

        Any object with a `resource_version` will do, and a whole object as a dict.
        """
        version = version_of(written)
        _host.current().cache_wait_until_seen(self.name, version, milliseconds(timeout))


class Index:
    """A declared index over a lister; see `Lister.index`."""

    def __init__(
        self, name: str, lister: Lister, label: str | None, pointer: str | None, owner_uid: bool
    ) -> None:
        self.name = name
        self.lister = lister
        self.label = label
        self.pointer = pointer
        self.owner_uid = owner_uid
        self.check()

    def check(self) -> None:
        """Raise an error for a part of the declaration that the host cannot take."""
        what = f"index {text('name', self.name)!r}"
        instance(f"{what}: lister", self.lister, Lister, "a Lister")
        label = optional_text(f"{what}: label", self.label)
        pointer = optional_text(f"{what}: pointer", self.pointer)
        if (label is not None) + (pointer is not None) + boolean(f"{what}: owner_uid", self.owner_uid) != 1:
            raise TypeError(f"{what}: give one of label=, pointer= and owner_uid=True")

    @overload
    def list(self, value: str, *, namespace: str | None = ...) -> Iterator[dict[str, Any]]: ...

    @overload
    def list(self, value: str, *, namespace: str | None = ..., fields: FieldsOf[F]) -> Iterator[Row[F]]: ...

    def list(self, value: str, *, namespace: str | None = None, fields: Any = None) -> Iterator[Any]:
        """Return the objects that have this value in the index, ordered by key, and read page after page."""
        reader, host = Reader(fields), _host.current()
        wanted, chosen = text("value", value), optional_text("namespace", namespace)
        return reader.pages(
            lambda token: host.cache_by_index(self.name, wanted, chosen, reader.projection, token)
        )

    def values(self) -> builtins.list[str]:
        """Return the values of all objects that the plugin's account may read, sorted."""
        return [*_host.current().cache_index_values(self.name)]
