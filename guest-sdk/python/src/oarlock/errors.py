"""Errors of calls to the host, and the failures that a handler raises."""

from __future__ import annotations

from ._durations import Duration, milliseconds, seconds


class OarlockError(Exception):
    """A call to the host failed. The text is for people and names the object or pointer."""


class NotFound(OarlockError):
    """There is no such object, field or resource."""


class AlreadyExists(OarlockError):
    """An object of that name exists already."""


class Conflict(OarlockError):
    """The object changed since it was read, or a precondition does not hold. Read it again and retry."""


class Forbidden(OarlockError):
    """The plugin's ServiceAccount may not do this."""


class Invalid(OarlockError):
    """The request itself is wrong, or the API server rejects it."""


class Throttled(OarlockError):
    """A rate limit of the API server, or of the host, is exceeded, or a queue of the host is full."""

    #: The delay in seconds that the server asked for, if it named one. A subclass whose `__init__` does not
    #: call this one has None.
    retry_after: float | None = None

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = None if retry_after is None else seconds(retry_after)


class Unavailable(OarlockError):
    """The API server cannot be reached. As far as the host knows, nothing was changed."""


class Timeout(OarlockError):
    """No answer came in time. The outcome is unknown: a write may have happened."""


class Gone(OarlockError):
    """The thing asked for no longer exists, such as the next page of a list that expired."""


class NotDeclared(OarlockError):
    """The plugin did not declare this lister, index or request."""


class NotSynced(OarlockError):
    """The cache behind this lister has not synced."""


class LimitExceeded(OarlockError):
    """A limit of the contract, or of the plugin's file, is exceeded."""


class Suspended(OarlockError):
    """The operator has suspended this plugin's writes."""


class NoHost(OarlockError):
    """The host was called where it cannot be: while the module is imported, or outside of a test's host."""


class Failure(Exception):
    """A handler could not do its work. Raise `Retry` or `Terminal`."""


class Retry(Failure):
    """Has the host call again, with exponential back-off, but not before `after` (at most an hour)."""

    #: The least wait in milliseconds. A subclass whose `__init__` does not call this one has None.
    after_ms: int | None = None

    def __init__(self, message: str = "", *, after: Duration | None = None) -> None:
        super().__init__(message)
        self.after_ms = None if after is None else milliseconds(after)


class Terminal(Failure):
    """Has the host park the object or key: it is not tried again before its next change."""
