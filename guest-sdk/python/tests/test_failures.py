import logging

import pytest

from oarlock import Conflict, Invalid, NotDeclared, Plugin, Retry, Terminal, Throttled, log
from oarlock._failures import CallFailure, failure_of
from oarlock.testing import FakeHost, Logged


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Retry("not yet"), CallFailure("retry", "not yet")),
        (Retry("not yet", after=2), CallFailure("retry", "not yet", 2000)),
        (Terminal("never"), CallFailure("terminal", "never")),
        (Conflict("changed"), CallFailure("retry", "changed")),
        (Throttled("slow", 1.5), CallFailure("retry", "slow", 1500)),
        (Throttled("slow", 1e9), CallFailure("retry", "slow", 2**32 - 1)),
        (Throttled("slow"), CallFailure("retry", "slow")),
        (Invalid("wrong"), CallFailure("terminal", "wrong")),
        (NotDeclared("what"), CallFailure("terminal", "what")),
        (Retry(), CallFailure("retry", "Retry")),
    ],
)
def test_an_expected_exception_becomes_a_failure_and_no_line(error: Exception, failure: CallFailure) -> None:
    with FakeHost(Plugin("test", "1.0")) as host:
        assert failure_of(error) == failure
        assert host.logs == []


def test_any_other_exception_is_retried_and_its_traceback_logged() -> None:
    def read(labels: dict[str, str]) -> str:
        return labels["app"]

    with FakeHost(Plugin("test", "1.0")) as host:
        with pytest.raises(KeyError) as raised:
            read({})
        assert failure_of(raised.value) == CallFailure("retry", "KeyError: 'app'")
    [line] = host.logs
    assert line.level == "error"
    assert line.message.startswith("Traceback (most recent call last):")
    assert "in read" in line.message
    assert line.message.endswith("KeyError: 'app'")


def test_logging_of_the_standard_library_goes_to_the_host() -> None:
    with FakeHost(Plugin("test", "1.0")) as host:
        logging.getLogger("library").warning("slow: %d s", 3, extra={"url": "x"})
        logging.debug("detail")
        logging.log(log.TRACE, "more detail")
        log.info("copied", namespace="a", name="b", count=2, ready=True, phase=None)
    logging.getLogger("library").warning("no host is there any more")
    assert host.logs == [
        Logged("warn", "slow: 3 s", {"url": "x", "logger": "library"}),
        Logged("debug", "detail"),
        Logged("trace", "more detail"),
        Logged(
            "info", "copied", {"namespace": "a", "name": "b", "count": "2", "ready": "true", "phase": "null"}
        ),
    ]


def test_the_folders_of_a_component_are_not_shown() -> None:
    assert log.without_folders('  File "/0/plugin.py", line 3, in f') == '  File "plugin.py", line 3, in f'
    assert log.without_folders('  File "/home/plugin.py", line 3') == '  File "/home/plugin.py", line 3'


def test_only_levels_that_the_host_writes_are_formatted() -> None:
    class Quiet(FakeHost):
        def log_enabled(self, level: str) -> bool:
            return level in ("warn", "error")

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    with Quiet(Plugin("test", "1.0")):
        assert not log.enabled("info")
        assert not logging.getLogger().isEnabledFor(logging.INFO)
        logging.info("%s", Costly())
