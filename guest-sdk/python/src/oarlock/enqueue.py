"""Rules for the key that a notification adds to the work queue."""

from __future__ import annotations

from dataclasses import dataclass

from ._values import boolean, text
from .names import WorkKey
from .pointers import checked


@dataclass(frozen=True)
class Itself:
    """The object itself. The key's kind is the name of the watch."""


@dataclass(frozen=True)
class ControllerOwner:
    """The object's controller owner, if it is of this kind. The key's kind is the owner's kind."""

    group: str
    kind: str
    cluster_scoped: bool = False

    def __post_init__(self) -> None:
        text("group", self.group)
        text("kind", self.kind)
        boolean("cluster_scoped", self.cluster_scoped)


@dataclass(frozen=True)
class NamedByField:
    """The object that the string at a pointer names, as `name` or `namespace/name`."""

    pointer: str
    cluster_scoped: bool = False

    def __post_init__(self) -> None:
        checked(self.pointer)
        boolean("cluster_scoped", self.cluster_scoped)


@dataclass(frozen=True)
class NamedByLabel:
    """The object that the value of a label names."""

    label: str
    cluster_scoped: bool = False

    def __post_init__(self) -> None:
        text("label", self.label)
        boolean("cluster_scoped", self.cluster_scoped)


Enqueue = Itself | ControllerOwner | NamedByField | NamedByLabel | WorkKey
"""The key that a notification adds; a `WorkKey` is always that key."""
