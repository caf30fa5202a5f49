"""Requests to the API server, made as the plugin's ServiceAccount."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, overload

from . import _host
from ._host import Preconditions, RawPage, Written
from ._values import (
    boolean,
    choice,
    instance,
    json_text,
    mapping,
    optional_text,
    optional_u32,
    parts,
    text,
    texts,
)
from .cache import Reader, Row
from .errors import LimitExceeded, NotDeclared, NotFound
from .names import AnyKey, AnyVersion, Resource, key_of, ref_of
from .pointers import F, FieldsOf

Verb = Literal["get", "list", "create", "patch", "update", "delete"]
PatchKind = Literal["merge", "strategic", "json"]
Propagation = Literal["background", "foreground", "orphan"]

_VERBS: tuple[str, ...] = get_args(Verb)
_A_LIST_OF_VERBS = f"a list of verbs, which are {', '.join(_VERBS)}"
_PATCHES: tuple[str, ...] = get_args(PatchKind)
_PROPAGATIONS: tuple[str, ...] = get_args(Propagation)

# What a request about a subresource can do.
_VERBS_OF_SUBRESOURCES: tuple[str, ...] = ("get", "patch", "update")

# The number of objects of a page of a live list: what the host takes if it is asked for none.
ROWS_OF_A_PAGE = 500


class Client:
    """The declared requests about one resource, or one subresource; see `Plugin.client`.

    The host never repeats a write by itself. A write with `unchanged=` fails with `Conflict` if the object is
    not the version that was read any more.
    """

    def __init__(self, resource: Resource, verbs: Sequence[Verb], namespace: str | None) -> None:
        self.resource = resource
        self.verbs: tuple[str, ...] = tuple(parts(f"client of {resource}: verbs", verbs, _A_LIST_OF_VERBS))
        self.namespace = namespace
        self.check()

    def check(self) -> None:
        """Raise an error for a part of the declaration that the host cannot take."""
        what = f"client of {instance('resource', self.resource, Resource, 'a Resource')}"
        # Stored, as the start may have set another iterable, which can be read once only.
        verbs = self.verbs = tuple(texts(f"{what}: verbs", self.verbs, _A_LIST_OF_VERBS))
        unknown = [verb for verb in verbs if verb not in _VERBS]
        if unknown or not verbs:
            wrong = f"{unknown[0]!r} is not a verb" if unknown else "no verb is declared"
            raise ValueError(f"{what}: {wrong}; the verbs are {', '.join(_VERBS)}")
        of_whole = [verb for verb in verbs if verb not in _VERBS_OF_SUBRESOURCES]
        if self.resource.subresource and of_whole:
            # `delete` would delete the object.
            raise ValueError(f"{what}: only whole objects have {of_whole[0]!r}; make a client of them, too")
        optional_text(f"{what}: namespace", self.namespace)

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
        limit: int | None = ...,
    ) -> Iterator[dict[str, Any]]: ...

    @overload
    def list(
        self,
        *,
        namespace: str | None = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        limit: int | None = ...,
        fields: FieldsOf[F],
    ) -> Iterator[Row[F]]: ...

    def list(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        fields: Any = None,
    ) -> Iterator[Any]:
        """Return objects as the API server has them now, and read page after page of at most `limit` objects.

        Of large objects a page has fewer.

        All pages show one state of the cluster. If the API server forgets it, `Gone` is raised. From the
        second read on, a lister is cheaper.
        """
        reader, host, resource = Reader(fields), self._host("list"), self.resource
        rows = optional_u32("limit", limit) or ROWS_OF_A_PAGE
        chosen = optional_text("namespace", namespace)
        labels, fields_match = text("label_selector", label_selector), text("field_selector", field_selector)

        def fetch(token: str) -> RawPage:
            nonlocal rows
            while True:
                try:
                    return host.client_list(
                        resource, chosen, labels, fields_match, reader.projection, rows, token
                    )
                except LimitExceeded:
                    if rows == 1:
                        raise
                # The objects of the page are too large together.
                rows //= 2

        return reader.pages(fetch)

    def create(self, body: Mapping[str, Any]) -> Written:
        """Create an object in the namespace of its metadata; raise `AlreadyExists` if there is one."""
        metadata = mapping("body['metadata']", mapping("body", body).get("metadata"))
        namespace = text("metadata.namespace", metadata.get("namespace", ""))
        written = self._host("create").client_create(self.resource, namespace, json_text("body", body))
        return written._replace(namespace=namespace)

    def apply(
        self, body: Mapping[str, Any], *, force: bool = False, unchanged: AnyVersion | None = None
    ) -> Written:
        """Apply an object, server-side, with the plugin's name as field manager.

        Raise `Conflict` if another manager owns a field, unless `force` takes it over.
        """
        host, key, conditions = self._host("patch"), key_of(mapping("body", body)), _preconditions(unchanged)
        encoded, forced = json_text("body", body), boolean("force", force)
        written = host.client_apply(self.resource, key, encoded, forced, conditions)
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
        if choice("kind", kind, _PATCHES) == "json":
            body = parts("body", body, "a list of operations, or another kind=")
        else:
            mapping("body", body)
        written = host.client_patch(self.resource, named, kind, json_text("body", body), conditions)
        return written._replace(namespace=named.namespace)

    def replace(self, body: Mapping[str, Any]) -> Written:
        """Replace an object by a changed copy of what `get` or `list` of a client returned."""
        host, key = self._host("update"), key_of(mapping("body", body))
        written = host.client_replace(self.resource, key, json_text("body", body))
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
        how = choice("propagation", propagation, _PROPAGATIONS)
        grace = optional_u32("grace_period_seconds", grace_period_seconds)
        try:
            host.client_delete(self.resource, key_of(key), how, grace, conditions)
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


def _object(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value
