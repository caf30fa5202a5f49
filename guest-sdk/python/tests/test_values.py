"""A value of a wrong type is an exception that names the argument. The real host would end the instance."""

# Here types are wrong on purpose.
# mypy: disable-error-code="arg-type, dict-item"

import logging
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from oarlock import (
    Added,
    Condition,
    ControllerOwner,
    EventRecorder,
    NamedByField,
    NamedByLabel,
    NotDeclared,
    ObjectKey,
    Plugin,
    Requeue,
    Resource,
    Retry,
    Terminal,
    Throttled,
    WorkKey,
    annotation,
    at,
    config,
    equals,
    exists,
    label,
    log,
    metrics,
    pointer,
    work_queue,
)
from oarlock._failures import CallFailure, failure_of, last_line
from oarlock._values import MAX_U32, json_text, number, printable, shown, texts, u32
from oarlock.client import Client, Verb
from oarlock.testing import FakeHost, Logged

from .objects import pod

HALF = "a\ud800"
ALL: list[Verb] = ["get", "list", "create", "patch", "update", "delete"]
WEB = ObjectKey("a", "web")


class Broken:
    def __str__(self) -> str:
        raise LookupError("broken")

    __repr__ = __str__


class Case:
    """A plugin with one of everything, and the host that runs it."""

    def __init__(self) -> None:
        self.plugin = Plugin("test", "1.0")
        self.pods: Any = self.plugin.lister("v1/pods")
        self.index: Any = self.pods.index("by-app", label="app")
        self.client: Any = self.plugin.client("v1/pods", ALL)


def raises(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=f"^{re.escape(message)}")


# === calls of the host ===

Call = Callable[[Case], object]


def emitted(case: Case, *args: Any) -> None:
    EventRecorder("v1/pods", "Pod").normal(*args)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: config.get(None), "pointer=None is not allowed: give a str"),
        (lambda it: config.get(b"/a"), "pointer=b'/a' is not allowed: give a str"),
        (lambda it: it.pods.get(ObjectKey(None, "web")), "key.namespace=None is not allowed: give a str"),
        (lambda it: it.pods.get(ObjectKey("a", 5)), "key.name=5 is not allowed: give a str"),
        (lambda it: it.pods.get({"metadata": {"name": 5}}), "metadata.name=5 is not allowed: give a str"),
        (lambda it: it.pods.get(None), "this NoneType does not name an object: give ObjectKey("),
        (
            lambda it: it.pods.get(WEB, fields=5),
            "fields=5 is not allowed: give a dataclass, or a list of JSON pointers",
        ),
        (
            lambda it: it.pods.get(WEB, fields={"/a": 1}),
            "fields={'/a': 1} is not allowed: give a dataclass, or a list of JSON pointers",
        ),
        (lambda it: it.pods.get(WEB, fields=["/a", None]), "fields[1]=None is not allowed: give a str"),
        (lambda it: it.pods.list(namespace=5), "namespace=5 is not allowed: give a str or None"),
        (lambda it: it.pods.list(label_selector=None), "label_selector=None is not allowed: give a str"),
        (lambda it: it.pods.wait_until_seen(None), "this NoneType does not name a version of an object"),
        (lambda it: it.index.list(None), "value=None is not allowed: give a str"),
        (lambda it: it.index.list("x", namespace=b"a"), "namespace=b'a' is not allowed: give a str or None"),
        (lambda it: it.client.get(ObjectKey("a", None)), "key.name=None is not allowed: give a str"),
        (lambda it: it.client.list(namespace=5), "namespace=5 is not allowed: give a str or None"),
        (lambda it: it.client.list(label_selector=5), "label_selector=5 is not allowed: give a str"),
        (lambda it: it.client.list(field_selector=5), "field_selector=5 is not allowed: give a str"),
        (
            lambda it: it.client.list(limit="5"),
            "limit='5' is not allowed: give a whole number, 0 to 4294967295",
        ),
        (
            lambda it: it.client.list(limit=1.0),
            "limit=1.0 is not allowed: give a whole number, 0 to 4294967295",
        ),
        (lambda it: it.client.create(None), "body=None is not allowed: give a dict"),
        (lambda it: it.client.create({}), "body['metadata']=None is not allowed: give a dict"),
        (
            lambda it: it.client.create({"metadata": {"namespace": None}}),
            "metadata.namespace=None is not allowed: give a str",
        ),
        (lambda it: it.client.apply([]), "body=[] is not allowed: give a dict"),
        (
            lambda it: it.client.apply(pod("web"), force="yes"),
            "force='yes' is not allowed: give True or False",
        ),
        (lambda it: it.client.replace("{}"), "body='{}' is not allowed: give a dict"),
        (lambda it: it.client.patch(WEB, [], kind="merge"), "body=[] is not allowed: give a dict"),
        (
            lambda it: it.client.patch(WEB, {}, kind="json"),
            "body={} is not allowed: give a list of operations, or another kind=",
        ),
        (
            lambda it: it.client.patch(WEB, {"spec": {"at": datetime(2026, 1, 1)}}),
            "body['spec']['at']=datetime.datetime(2026, 1, 1, 0, 0) is not JSON: give a dict, list, str,",
        ),
        (lambda it: it.client.patch(WEB, {"a": [1, b"x"]}), "body['a'][1]=b'x' is not JSON: give a dict"),
        (lambda it: it.client.patch(WEB, {"a": {(1, 2): 3}}), "the name (1, 2) in body['a'] is not JSON"),
        (
            lambda it: it.client.patch(WEB, {}, unchanged={"metadata": {"name": "web", "uid": 5}}),
            "uid=5 is not allowed: give a str",
        ),
        (
            lambda it: it.client.delete(WEB, grace_period_seconds=1.5),
            "grace_period_seconds=1.5 is not allowed: give a whole number",
        ),
        (
            lambda it: it.client.delete(WEB, propagation=None),
            "propagation=None is not allowed: give one of 'background', 'foreground', 'orphan'",
        ),
        (
            lambda it: work_queue.add(WEB),
            "key=ObjectKey(namespace='a', name='web') is not allowed: give a WorkKey",
        ),
        (
            lambda it: work_queue.add(WorkKey("pods", None, "a")),
            "key.namespace=None is not allowed: give a str",
        ),
        (lambda it: emitted(it, WEB, None, "note"), "reason=None is not allowed: give a str"),
        (lambda it: emitted(it, WEB, "Seen", 5), "note=5 is not allowed: give a str"),
        (lambda it: EventRecorder("v1/pods", None), "kind=None is not allowed: give a str"),
        (lambda it: EventRecorder(None, "Pod"), "resource=None is not allowed: give a str"),
        (lambda it: metrics.Counter(5), "name=5 is not allowed: give a str"),
        (lambda it: metrics.Counter("a").inc(code=200), "code=200 is not allowed: give a str"),
        (lambda it: metrics.Counter("a").inc("1"), "by='1' is not allowed: give a number"),
        (lambda it: metrics.Gauge("a").set(None), "value=None is not allowed: give a number"),
        (lambda it: log.enabled(20), "level=20 is not allowed: give one of 'trace', 'debug', 'info', 'warn'"),
    ],
)
def test_a_value_of_another_type_is_a_type_error(call: Call, message: str) -> None:
    case = Case()
    with FakeHost(case.plugin), raises(TypeError, message):
        call(case)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda it: config.get(f"/{HALF}"),
            r"pointer='/a\ud800' is not allowed: half of a surrogate pair is not",
        ),
        (lambda it: it.pods.get(ObjectKey("a", HALF)), r"key.name='a\ud800' is not allowed: half of a"),
        (lambda it: it.pods.list(label_selector=HALF), r"label_selector='a\ud800' is not allowed: half of a"),
        (lambda it: it.index.list(HALF), r"value='a\ud800' is not allowed: half of a surrogate pair"),
        (
            lambda it: it.client.list(limit=-1),
            "limit=-1 is not allowed: give a whole number, 0 to 4294967295",
        ),
        (
            lambda it: it.client.list(limit=2**32),
            "limit=4294967296 is not allowed: give a whole number, 0 to",
        ),
        (
            lambda it: it.client.patch(WEB, {}, kind="merge-patch"),
            "kind='merge-patch' is not allowed: give one of 'merge', 'strategic', 'json'",
        ),
        (
            lambda it: it.client.delete(WEB, propagation="Background"),
            "propagation='Background' is not allowed: give one of 'background', 'foreground', 'orphan'",
        ),
        (
            lambda it: it.client.delete(WEB, grace_period_seconds=-1),
            "grace_period_seconds=-1 is not allowed: give a whole number",
        ),
        (
            lambda it: it.client.patch(WEB, {"spec": {"n": math.nan}}),
            "body['spec']['n']=nan is not JSON: give a finite number",
        ),
        (lambda it: it.client.patch(WEB, {"a": [math.inf]}), "body['a'][0]=inf is not JSON: give a finite"),
        (
            lambda it: it.client.patch(WEB, {"data": {"text": HALF}}),
            r"body['data']['text']='a\ud800' is not allowed: half of a surrogate pair",
        ),
        (
            lambda it: it.client.patch(WEB, {"data": {HALF: ""}}),
            r"a name in body['data']='a\ud800' is not allowed: half of a surrogate pair",
        ),
        (lambda it: work_queue.add(WorkKey(HALF)), r"key.kind='a\ud800' is not allowed: half of a"),
        (
            lambda it: emitted(it, WEB, "Seen", HALF),
            r"note='a\ud800' is not allowed: half of a surrogate pair",
        ),
        (lambda it: metrics.Counter("a").inc(team=HALF), r"team='a\ud800' is not allowed: half of a"),
        (lambda it: metrics.Gauge("a").set(10**400), "value=1000"),
        (lambda it: log.enabled("warning"), "level='warning' is not allowed: give one of 'trace', 'debug',"),
    ],
)
def test_a_value_out_of_its_range_is_a_value_error(call: Call, message: str) -> None:
    case = Case()
    with FakeHost(case.plugin) as host:
        with raises(ValueError, message):
            call(case)
        assert (host.writes, host.events, host.metrics, host.queue) == ([], [], {}, {})


def test_a_json_text_has_no_more_than_json_has() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = [circle]
    with raises(ValueError, "body['self'][0] is not JSON: it contains itself"):
        json_text("body", circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with raises(ValueError, "body is not JSON: "):
        json_text("body", deep)
    with raises(TypeError, "body=<Broken> is not JSON"):
        json_text("body", Broken())
    assert (
        json_text("body", {"a": ["ü", (1, 2.5), True, None], 5: {}}) == '{"a":["ü",[1,2.5],true,null],"5":{}}'
    )


def test_a_part_of_an_event_may_be_written() -> None:
    case = Case()

    @case.plugin.watch("v1/configmaps").on_add
    def added(event: Added) -> None:
        case.client.create({"metadata": {"name": "web"}, "spec": event.object["data"]})
        with raises(TypeError, "pointer=None is not allowed: give a str"):
            event.field(None)
        with raises(TypeError, "fields=None is not allowed: give a dataclass, or a list of JSON pointers"):
            event.read(None)  # type: ignore[call-overload]
        assert HALF not in event.object
        assert event.object.get(HALF) is None

    with FakeHost(case.plugin) as host:
        host.apply("v1/configmaps", {"metadata": {"name": "a"}, "data": {"b": "c"}})
        found = host.object("v1/pods", "", "web")
        assert found is not None
        assert found["spec"] == {"b": "c"}


def test_a_metric_takes_any_number() -> None:
    with FakeHost(Plugin("test", "1.0")) as host:
        metrics.Gauge("ready").set(True)
        metrics.Gauge("count").set(3)
    assert host.metrics == {("ready", ()): 1.0, ("count", ()): 3.0}
    assert isinstance(number("by", True), float)


# === declarations ===

Declare = Callable[[Plugin], object]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda it: Plugin(None, "1.0"), "name=None is not allowed: give a str"),
        (lambda it: Plugin("a", 1.0), "version=1.0 is not allowed: give a str"),
        (lambda it: Plugin("a", "1", stateless="no"), "stateless='no' is not allowed: give True or False"),
        (lambda it: it.watch(None), "resource=None is not allowed: give a str"),
        (lambda it: it.watch(Resource("", "v1", None)), "resource.plural=None is not allowed: give a str"),
        (lambda it: it.watch("v1/pods", name=5), "name=5 is not allowed: give a str"),
        (
            lambda it: it.watch("v1/pods", namespace=5),
            "watch 'pods': namespace=5 is not allowed: give a str or None",
        ),
        (
            lambda it: it.watch("v1/pods", label_selector=None),
            "watch 'pods': label_selector=None is not allowed: give a str",
        ),
        (
            lambda it: it.watch("v1/pods", conditions=exists("/a")),
            "watch 'pods': conditions=Condition(pointer='/a', test='exists', texts=()) is not allowed: give",
        ),
        (
            lambda it: it.watch("v1/pods", conditions=["/a"]),
            "watch 'pods': conditions[0]='/a' is not allowed: give a list of conditions, such as [exists(",
        ),
        (
            lambda it: it.watch("v1/pods", metadata_only=1),
            "watch 'pods': metadata_only=1 is not allowed: give True or False",
        ),
        (
            lambda it: it.watch("v1/pods", enqueue="itself"),
            "watch 'pods': enqueue='itself' is not allowed: give a rule, such as Itself(), or a WorkKey",
        ),
        (
            lambda it: it.watch("v1/pods", enqueue=WorkKey("a", None)),
            "watch 'pods': enqueue.namespace=None is not allowed: give a str",
        ),
        (
            lambda it: it.watch("v1/pods", ignore_own_writes=None),
            "watch 'pods': ignore_own_writes=None is not allowed: give True or False",
        ),
        (
            lambda it: it.watch("v1/pods", fields=b"/a"),
            "fields=b'/a' is not allowed: give a dataclass, or a list of JSON pointers",
        ),
        (lambda it: it.lister("v1/pods", wakes="y"), "lister 'pods': wakes='y' is not allowed: give True or"),
        (
            lambda it: it.lister("v1/pods", namespace=5),
            "lister 'pods': namespace=5 is not allowed: give a str",
        ),
        (lambda it: it.lister("v1/pods").index(None, label="a"), "name=None is not allowed: give a str"),
        (
            lambda it: it.lister("v1/pods").index("a", label=5),
            "index 'a': label=5 is not allowed: give a str",
        ),
        (
            lambda it: it.lister("v1/pods").index("a", owner_uid="x"),
            "index 'a': owner_uid='x' is not allowed: give True or False",
        ),
        (
            lambda it: it.client("v1/pods", None),
            "client of v1/pods: verbs=None is not allowed: give a list of",
        ),
        (
            lambda it: it.client("v1/pods", "get"),
            "client of v1/pods: verbs='get' is not allowed: give a list",
        ),
        (lambda it: it.client("v1/pods", [5]), "client of v1/pods: verbs[0]=5 is not allowed: give a str"),
        (
            lambda it: it.client("v1/pods", ["get"], namespace=5),
            "client of v1/pods: namespace=5 is not allowed: give a str or None",
        ),
        (lambda it: it.schedule(5, every=60), "name=5 is not allowed: give a str"),
        (lambda it: it.schedule("a", cron=5), "schedule 'a': cron=5 is not allowed: give a str or None"),
        (
            lambda it: it.schedule("a", cron="* * * * *", time_zone=None),
            "schedule 'a': time_zone=None is not allowed: give a str",
        ),
        (
            lambda it: it.schedule("a", every=60, at_start="y"),
            "schedule 'a': at_start='y' is not allowed: give True or False",
        ),
        (
            lambda it: it.schedule("a", every=60, key="b"),
            "schedule 'a': key='b' is not allowed: give a WorkKey",
        ),
        (lambda it: it.reconcile(5), "kinds[0]=5 is not allowed: give a str"),
        (lambda it: at(5), "pointer=5 is not allowed: give a str"),
        (lambda it: pointer("a", 5), "part=5 is not allowed: give a str"),
        (lambda it: label(None), "name=None is not allowed: give a str"),
        (lambda it: annotation(None), "name=None is not allowed: give a str"),
        (
            lambda it: equals("/a", {1, 2}),
            "value={1, 2} is not JSON: give a dict, list, str, int, float, bool",
        ),
        (lambda it: Condition("/a", None), "test=None is not allowed: give one of 'exists', 'absent',"),
        (lambda it: ControllerOwner("apps", None), "kind=None is not allowed: give a str"),
        (lambda it: NamedByField(5), "pointer=5 is not allowed: give a str"),
        (lambda it: NamedByLabel(5), "label=5 is not allowed: give a str"),
    ],
)
def test_a_declaration_of_another_type_is_refused_where_it_is_made(declare: Declare, message: str) -> None:
    with raises(TypeError, message):
        declare(Plugin("test", "1.0"))


def test_a_condition_has_no_value_that_is_not_json() -> None:
    with raises(ValueError, "value=nan is not JSON: give a finite number"):
        equals("/spec/n", math.nan)
    with raises(ValueError, r"value='a\ud800' is not allowed: half of a surrogate pair"):
        equals("/spec/s", HALF)


def test_a_declaration_that_the_start_changes_is_checked_after_it() -> None:
    case = Case()
    pods = case.plugin.watch("v1/pods")

    @case.plugin.on_start
    def start() -> None:
        pods.label_selector = config.get("/selector")

    with (
        raises(TypeError, "watch 'pods': label_selector=None is not allowed: give a str"),
        FakeHost(case.plugin),
    ):
        raise AssertionError("the plugin has started")
    # The host of the test that failed is not the host of what follows.
    with FakeHost(case.plugin, config={"selector": "app=web"}):
        assert pods.label_selector == "app=web"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: setattr(it.plugin, "version", None), "version=None is not allowed: give a str"),
        (
            lambda it: setattr(it.pods, "namespace", 5),
            "lister 'pods': namespace=5 is not allowed: give a str",
        ),
        (lambda it: setattr(it.index, "lister", None), "index 'by-app': lister=None is not allowed: give a"),
        (
            lambda it: setattr(it.client, "namespace", 5),
            "client of v1/pods: namespace=5 is not allowed: give",
        ),
        (
            lambda it: setattr(it.plugin.schedule("a", every=60), "every_seconds", "60"),
            "schedule 'a': every_seconds='60' is not allowed: give a whole number",
        ),
        (
            lambda it: setattr(it.plugin.watch("v1/pods"), "resync_seconds", None),
            "watch 'pods': resync_seconds=None is not allowed: give a whole number",
        ),
    ],
)
def test_every_declaration_is_checked_at_the_start(change: Callable[[Case], None], message: str) -> None:
    case = Case()
    case.plugin.on_start(lambda: change(case))
    with raises(TypeError, message), FakeHost(case.plugin):
        raise AssertionError("the plugin has started")


def test_an_iterable_that_the_start_sets_is_kept() -> None:
    case = Case()
    pods = case.plugin.watch("v1/pods")

    @case.plugin.on_start
    def start() -> None:
        pods.conditions = (exists(path) for path in ("/spec/a", "/spec/b"))  # type: ignore[assignment]
        case.client.verbs = (verb for verb in ("get", "list"))

    with FakeHost(case.plugin):
        assert pods.conditions == [exists("/spec/a"), exists("/spec/b")]
        assert case.client.verbs == ("get", "list")
        assert case.client.get(WEB) is None
        with raises(NotDeclared, "the plugin did not declare 'delete'"):
            case.client.delete(WEB)


def test_a_condition_keeps_the_texts_of_any_iterable() -> None:
    condition = Condition("/a", "in", (text for text in ("1", "2")))
    assert condition == Condition("/a", "in", ["1", "2"])
    assert condition.texts == ("1", "2")
    assert len({condition}) == 1


class Whole:
    """A whole number of another library."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Ratio:
    """A number of another library that is whole by its class only."""

    def __index__(self) -> int:
        raise TypeError("not whole")


def test_whole_numbers_of_other_libraries_become_an_int() -> None:
    assert [type(u32("n", Whole(n))) for n in (0, MAX_U32)] == [int, int]
    for wrong in (Whole(-1), Whole(MAX_U32 + 1)):
        with raises(ValueError, "n=<"):
            u32("n", wrong)
    with raises(TypeError, "n=True is not allowed: give a whole number"):
        u32("n", True)
    with raises(TypeError, "n=<"):
        u32("n", Ratio())


def test_the_host_receives_an_int_for_a_whole_number_of_another_library() -> None:
    case = Case()
    pods, tick = case.plugin.watch("v1/pods"), case.plugin.schedule("tick", every=60)

    @case.plugin.on_start
    def start() -> None:
        pods.resync_seconds = Whole(30)  # type: ignore[assignment]
        tick.every_seconds = Whole(5)  # type: ignore[assignment]

    @tick.reconcile
    def reconcile(key: WorkKey) -> Requeue:
        requeue = Requeue(after=1)
        requeue.after_ms = Whole(7)  # type: ignore[assignment]
        return requeue

    with FakeHost(case.plugin):
        assert [type(it) for it in (pods.resync_seconds, tick.every_seconds)] == [int, int]
        requeue = case.plugin.run_reconcile(WorkKey("tick"))
        assert requeue is not None
        assert type(requeue.after_ms) is int


def test_a_list_without_a_limit_has_the_limit_none() -> None:
    case = Case()
    with FakeHost(case.plugin) as host:
        host.apply("v1/pods", pod("web"))
        for limit in (None, 0, 1, Whole(1)):
            assert [row.name for row in case.client.list(limit=limit, fields=[])] == ["web"]


# === what a function returns and raises ===


@pytest.mark.parametrize("returned", [60, "60s", True, {"after": 60}])
def test_what_a_reconcile_returns_is_none_or_a_requeue(returned: Any) -> None:
    plugin = Plugin("test", "1.0")

    @plugin.watch("v1/pods").reconcile
    def reconcile(key: WorkKey) -> Any:
        return returned

    message = f"the outcome of {reconcile.__qualname__}={returned!r} is not allowed: give None, or Requeue("
    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web"))
        with raises(TypeError, message):
            host.run()


def test_a_delay_that_was_changed_to_no_number_is_refused() -> None:
    plugin = Plugin("test", "1.0")

    @plugin.reconcile
    def reconcile(key: WorkKey) -> Requeue:
        requeue = Requeue(after=1)
        requeue.after_ms = 0.5  # type: ignore[assignment]
        return requeue

    with FakeHost(plugin) as host:
        with pytest.raises(
            TypeError, match=r"after_ms=0.5 is not allowed: give a whole number, 0 to 42949672"
        ):
            host.reconcile(WorkKey("a"))
        with raises(TypeError, "key='a' is not allowed: give a WorkKey"):
            host.reconcile("a")


class Later(Retry):
    """Does not call the `__init__` of `Retry`."""

    def __init__(self, what: str) -> None:
        self.what = what


class Slow(Throttled):
    """Does not call the `__init__` of `Throttled`."""

    def __init__(self, what: str) -> None:
        self.what = what


def wrong_delay() -> Retry:
    error = Retry("later", after=1)
    error.after_ms = "1s"  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Terminal(HALF), CallFailure("terminal", "a�")),
        (Retry("\ud83d\ude00", after=1), CallFailure("retry", "😀", 1000)),
        (ValueError(HALF), CallFailure("retry", "ValueError: a�")),
        (Terminal(5), CallFailure("terminal", "5")),
        (Terminal(Broken()), CallFailure("terminal", "<Terminal, whose __str__ raises LookupError>")),
        (Later("x"), CallFailure("retry", "x")),
        (Slow("x"), CallFailure("retry", "x")),
        (
            wrong_delay(),
            CallFailure(
                "retry", "TypeError: after_ms='1s' is not allowed: give a whole number, 0 to 4294967295"
            ),
        ),
    ],
)
def test_every_exception_becomes_a_failure_that_utf_8_can_encode(
    error: Exception, failure: CallFailure
) -> None:
    with FakeHost(Plugin("test", "1.0")) as host:
        assert failure_of(error) == failure
    for text in (failure.message, last_line(error), *(line.message for line in host.logs)):
        assert text.encode()


def test_the_delay_of_an_exception_is_a_number() -> None:
    with raises(TypeError, "'2s' is not a duration: give a number of seconds"):
        Throttled("slow", "2s")


# === lines of the log ===


def test_a_line_never_raises_because_of_its_texts() -> None:
    with FakeHost(Plugin("test", "1.0")) as host:
        log.info(5)
        log.info(None, error=ValueError("x"))
        log.warning(HALF, **{HALF: "\udc00b", "pair": "\ud83d\ude00"})
        log.error(Broken(), what=Broken(), raw=b"x")
        logging.warning("half: %s", HALF, extra={"name of": HALF})
        logging.getLogger().handle(logging.makeLogRecord({"msg": "no name", "levelno": 20, 7: "seven"}))
    assert host.logs == [
        Logged("info", "5"),
        Logged("info", "None", {"error": "x"}),
        Logged("warn", "a�", {"a�": "�b", "pair": "😀"}),
        Logged(
            "error",
            "<Broken, whose __str__ raises LookupError>",
            {"what": "<Broken, whose __str__ raises LookupError>", "raw": "b'x'"},
        ),
        Logged("warn", "half: a�", {"name of": "a�"}),
        Logged("info", "no name", {"7": "seven", "logger": "null"}),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("ü😀", "ü😀"),
        ("\ud83d", "�"),
        ("\ude00\ud83d", "��"),
        ("\ud83dx\ud83d\ude00\ude00", "�x😀�"),
        ("\ufeffa\ud800", "\ufeffa�"),
        (None, "None"),
    ],
)
def test_halves_of_pairs_are_replaced(value: Any, text: str) -> None:
    assert printable(value) == text


def test_a_message_shows_the_beginning_of_a_long_value() -> None:
    assert shown("x" * 1000) == f"'{'x' * 98}…"
    assert shown(Broken()) == "<Broken>"
    assert texts("names", ("a", "b")) == ["a", "b"]


# === the host of a test ===


def test_objects_and_configuration_of_a_test_are_json() -> None:
    case = Case()
    with raises(ValueError, "config['n']=nan is not JSON: give a finite number"):
        FakeHost(case.plugin, config={"n": math.nan})
    with raises(TypeError, "config=[] is not allowed: give a dict"):
        FakeHost(case.plugin, config=[])
    with FakeHost(case.plugin) as host:
        with raises(TypeError, "body['spec']={1, 2} is not JSON: give a dict"):
            host.apply("v1/pods", pod("web", spec={1, 2}))
        host.apply("v1/pods", pod("web", spec={"ports": (80, 443)}))
        found = case.client.get(WEB)
        assert found["spec"] == {"ports": [80, 443]}


def test_a_client_of_a_resource_needs_a_resource() -> None:
    with raises(TypeError, "resource='v1/pods' is not allowed: give a Resource"):
        Client("v1/pods", ["get"], None)
