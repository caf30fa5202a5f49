"""Requests to the API server, made as the plugin's ServiceAccount."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from . import _host
from ._host import Preconditions, RawPage, Written
from .cache import Reader, Row
from .errors import LimitExceeded, NotDeclared, NotFound
from .names import AnyKey, AnyVersion, Resource, key_of, ref_of
from .pointers import F, FieldsOf

Verb = Literal["get", "list", "create", "patch", "update", "delete"]
PatchKind = Literal["merge", "strategic", "json"]
Propagation = Literal["background", "foreground", "orphan"]

_VERBS = ("get", "list", "create", "patch", "update", "delete")

# The number of objects of a page of a live list: what the host takes if it is asked for none.
ROWS_OF_A_PAGE = 500


class Client:
    """The declared requests about one resource, or one subresource; see `Plugin.client`.

    The host never repeats a write by itself. A write with `unchanged=` fails with `Conflict` if the object is
    not the version that was read any more.
    """

    def __init__(self, resource: Resource, verbs: Sequence[Verb], namespace: str | None) -> None:
        unknown = [verb for verb in verbs if verb not in _VERBS]
        if unknown or not verbs:
            what = f"{unknown[0]!r} is not a verb" if unknown else "no verb is declared"
            raise ValueError(f"client of {resource}: {what}; the verbs are {', '.join(_VERBS)}")
        self.resource = resource
        self.verbs = tuple(verbs)
        self.namespace = namespace

    def get(self, key: AnyKey) -> dict[str, Any] | None:
        """Return the object as the API server has it now, or None if it does not exist."""
        try:
            text = self._host("get").client_get(self.resource, key_of(key))
        except NotFound:
            return None
        return _object(text)

    @overload
    def list(
        self,
        *,
        namespace: str | None = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        limit: int = ...,
    ) -> Iterator[dict[str, Any]]: ...

    @overload
    def list(
        self,
        *,
        namespace: str | None = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        limit: int = ...,
        fields: FieldsOf[F],
    ) -> Iterator[Row[F]]: ...

    def list(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        fields: Any = None,
    ) -> Iterator[Any]:
        """Return objects as the API server has them now, and read page after page of at most `limit` objects.

        Of large objects a page has fewer.

        All pages show one state of the cluster. If the API server forgets it, `Gone` is raised. From the
        second read on, a lister is cheaper.
        """
        reader, host, resource = Reader(fields), self._host("list"), self.resource
        rows = limit or ROWS_OF_A_PAGE

        def fetch(token: str) -> RawPage:
            nonlocal rows
            while True:
                try:
                    return host.client_list(
                        resource, namespace, label_selector, field_selector, reader.projection, rows, token
                    )
                except LimitExceeded:
                    if rows == 1:
                        raise
                # The objects of the page are too large together.
                rows //= 2

        return reader.pages(fetch)

    def create(self, body: Mapping[str, Any]) -> Written:
        """Create an object in the namespace of its metadata; raise `AlreadyExists` if there is one."""
        namespace = body["metadata"].get("namespace", "")
        written = self._host("create").client_create(self.resource, namespace, _text(body))
        return written._replace(namespace=namespace)

    def apply(
        self, body: Mapping[str, Any], *, force: bool = False, unchanged: AnyVersion | None = None
    ) -> Written:
        """Apply an object, server-side, with the plugin's name as field manager.

        Raise `Conflict` if another manager owns a field, unless `force` takes it over.
        """
        host, key, conditions = self._host("patch"), key_of(body), _preconditions(unchanged)
        written = host.client_apply(self.resource, key, _text(body), force, conditions)
        return written._replace(namespace=key.namespace)

    def patch(
        self,
        key: AnyKey,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        kind: PatchKind = "merge",
        unchanged: AnyVersion | None = None,
    ) -> Written:
        """Change an existing object: by a merge patch, a strategic merge patch, or JSON patch operations."""
        host, named, conditions = self._host("patch"), key_of(key), _preconditions(unchanged)
        written = host.client_patch(self.resource, named, kind, _text(body), conditions)
        return written._replace(namespace=named.namespace)

    def replace(self, body: Mapping[str, Any]) -> Written:
        """Replace an object by a changed copy of what `get` or `list` of a client returned."""
        host, key = self._host("update"), key_of(body)
        written = host.client_replace(self.resource, key, _text(body))
        return written._replace(namespace=key.namespace)

    def delete(
        self,
        key: AnyKey,
        *,
        propagation: Propagation = "background",
        grace_period_seconds: int | None = None,
        unchanged: AnyVersion | None = None,
    ) -> bool:
        """Delete an object, and return whether there was one."""
        host, conditions = self._host("delete"), _preconditions(unchanged)
        try:
            host.client_delete(self.resource, key_of(key), propagation, grace_period_seconds, conditions)
        except NotFound:
            return False
        return True

    def _host(self, verb: Verb) -> _host.Host:
        if verb not in self.verbs:
            raise NotDeclared(
                f"the plugin did not declare {verb!r} of {self.resource}, so `oarlock rbac` does not print "
                f"it: write plugin.client({str(self.resource)!r}, {[*self.verbs, verb]})"
            )
        return _host.current()


def _preconditions(unchanged: AnyVersion | None) -> Preconditions:
    if unchanged is None:
        return Preconditions()
    ref = ref_of(unchanged)
    return Preconditions(ref.uid or None, ref.resource_version or None)


def _text(body: Any) -> str:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _object(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value
