"""One call of a handler: its context, its progress over several attempts, and its outcome."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from oarlock._values import finite, json_text, printable

from .registry import Handler
from .structs import LONGEST_DELAY, OWN_PREFIX, Body, ErrorsMode, Logger, PermanentError, TemporaryError

#: The object of the handler that runs.
current_body: ContextVar[Body] = ContextVar("current_body")

#: The handlers that the running handler has added.
subhandlers: ContextVar[list[Handler]] = ContextVar("subhandlers")


@dataclass(frozen=True)
class Progress:
    """What has become of a handler so far, as kopf stores it in an annotation."""

    started: str
    retries: int = 0
    success: bool = False
    failure: bool = False
    delayed: str | None = None
    message: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the handler is not called again."""
        return self.success or self.failure

    def text(self) -> str:
        """Return the text of the annotation."""
        found = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return json.dumps(found, separators=(",", ":"))


def annotation_of(handler_id: str) -> str:
    """Return the name of the annotation with the progress of a handler."""
    name = handler_id.replace("/", ".")
    if len(name) > 63:
        name = f"{name[:54]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return OWN_PREFIX + name


def progress_of(handler_id: str, annotations: Mapping[str, str], now: datetime) -> Progress:
    """Return the progress in the annotations of an object."""
    text = annotations.get(annotation_of(handler_id))
    found = json.loads(text) if text else {}
    known = {name: found[name] for name in Progress.__dataclass_fields__ if name in found}
    return Progress(**{"started": now.isoformat(), **known})


def attempt(
    handler: Handler,
    before: Progress,
    kwargs: Mapping[str, Any],
    now: datetime,
    returned: Callable[[Any], None],
) -> Progress:
    """Call a handler once, and return its progress."""
    logger: Logger = kwargs["logger"]
    started = datetime.fromisoformat(before.started)
    after = replace(before, retries=before.retries + 1, delayed=None)
    try:
        if handler.timeout is not None and (now - started).total_seconds() >= handler.timeout:
            raise PermanentError(f"it has timed out after {now - started}")
        if handler.retries is not None and before.retries >= handler.retries:
            raise PermanentError(f"it has failed {before.retries} times")
        runtime = now - started
        result = call(
            handler.function,
            {
                **kwargs,
                "retry": before.retries,
                "started": started,
                "runtime": runtime,
                "param": handler.param,
            },
        )
        if result is not None:
            json_text(f"the result of {handler.id!r}", result)
    except PermanentError as error:
        logger.error("Handler %r failed permanently: %s", handler.id, error)
        return replace(after, failure=True, message=printable(error))
    except TemporaryError as error:
        logger.error("Handler %r failed temporarily: %s", handler.id, error)
        return _delayed(after, now, _delay_of(error, handler, logger), printable(error))
    except Exception as error:
        logger.exception("Handler %r failed with an exception. Mode: %s", handler.id, handler.errors.name)
        if handler.errors is ErrorsMode.TEMPORARY:
            return _delayed(after, now, handler.backoff, printable(error))
        ignored = handler.errors is ErrorsMode.IGNORED
        return replace(after, success=ignored, failure=not ignored, message=printable(error))
    logger.debug("Handler %r succeeded.", handler.id)
    if result is not None:
        returned(result)
    return replace(after, success=True, message=None)


def call(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, to its end if it is `async`."""
    result = function(**kwargs)
    if not inspect.iscoroutine(result):
        return result
    try:
        result.send(None)
    except StopIteration as end:
        return end.value
    finally:
        result.close()
    raise PermanentError(
        "it waits for something, and an Oarlock plugin has no event loop: raise kopf.TemporaryError with a "
        "delay, or use a timer"
    )


def _delay_of(error: TemporaryError, handler: Handler, logger: Logger) -> float:
    try:
        return finite("delay", 0 if error.delay is None else error.delay)
    except (TypeError, ValueError) as wrong:
        # A handler has changed it to something else.
        logger.error("Handler %r is called again after its back-off: %s", handler.id, wrong)
        return handler.backoff


def _delayed(after: Progress, now: datetime, delay: float, message: str) -> Progress:
    until = now + timedelta(seconds=min(max(delay, 0), LONGEST_DELAY))
    return replace(after, delayed=until.isoformat(), message=message)
