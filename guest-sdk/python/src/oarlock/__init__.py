"""Kubernetes controllers in Python, as WebAssembly plugins of Oarlock. The README is the reference."""

from . import clock, config, log, metrics, work_queue
from ._durations import Duration
from ._host import Written
from .cache import Index, Lister, Row
from .client import Client
from .conditions import Condition, absent, differs, equals, exists, greater, less, none_of, one_of
from .enqueue import ControllerOwner, Itself, NamedByField, NamedByLabel
from .errors import (
    AlreadyExists,
    Conflict,
    Failure,
    Forbidden,
    Gone,
    Invalid,
    LimitExceeded,
    NoHost,
    NotDeclared,
    NotFound,
    NotSynced,
    OarlockError,
    Retry,
    Suspended,
    Terminal,
    Throttled,
    Timeout,
    Unavailable,
)
from .event import Added, Deleted, Event, State, Synced, Updated
from .lazy import LazyObject
from .names import ObjectKey, ObjectRef, Resource, WorkKey
from .plugin import Plugin
from .pointers import annotation, at, label, pointer
from .recorder import EventRecorder
from .watch import Requeue, Schedule, Watch

__version__ = "0.1.0"

__all__ = [
    "Added",
    "AlreadyExists",
    "Client",
    "Condition",
    "Conflict",
    "ControllerOwner",
    "Deleted",
    "Duration",
    "Event",
    "EventRecorder",
    "Failure",
    "Forbidden",
    "Gone",
    "Index",
    "Invalid",
    "Itself",
    "LazyObject",
    "LimitExceeded",
    "Lister",
    "NamedByField",
    "NamedByLabel",
    "NoHost",
    "NotDeclared",
    "NotFound",
    "NotSynced",
    "OarlockError",
    "ObjectKey",
    "ObjectRef",
    "Plugin",
    "Requeue",
    "Resource",
    "Retry",
    "Row",
    "Schedule",
    "State",
    "Suspended",
    "Synced",
    "Terminal",
    "Throttled",
    "Timeout",
    "Unavailable",
    "Updated",
    "Watch",
    "WorkKey",
    "Written",
    "absent",
    "annotation",
    "at",
    "clock",
    "config",
    "differs",
    "equals",
    "exists",
    "greater",
    "label",
    "less",
    "log",
    "metrics",
    "none_of",
    "one_of",
    "pointer",
    "work_queue",
]
