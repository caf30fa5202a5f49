package oarlock

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

func TestAnErrorBecomesTheFailureThatItAsksFor(t *testing.T) {
	plain := errors.New("broken")
	throttled := &Error{Kind: ErrThrottled, Message: "slow down", RetryAfter: 1500 * time.Microsecond}
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "retry: broken"},
		{Terminal(plain), "terminal: broken"},
		{fmt.Errorf("more: %w", Terminal(plain)), "terminal: more: broken"},
		{RetryAfter(time.Minute, plain), "after 60000: broken"},
		{RetryAfter(time.Minute, &Error{Kind: ErrInvalid, Message: "x"}), "after 60000: invalid: x"},
		{&Error{Kind: ErrInvalid, Message: "x"}, "terminal: invalid: x"},
		{&Error{Kind: ErrLimitExceeded, Message: "x"}, "terminal: limit exceeded: x"},
		{&Error{Kind: ErrConflict, Message: "x"}, "retry: conflict: x"},
		{throttled, "after 2: throttled: slow down"},
		{&Error{Kind: ErrThrottled, Message: "x"}, "retry: throttled: x"},
		{errors.New("half \xc3"), "retry: half \uFFFD"},
		{Terminal(errors.New("half \xc3")), "terminal: half \uFFFD"},
		{RetryAfter(math.MaxInt64, plain), "after 4294967295: broken"},
	} {
		if got := show(failure(c.err)); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
	if Terminal(nil) != nil || RetryAfter(time.Minute, nil) != nil {
		t.Error("no error became one")
	}
	if !errors.Is(Terminal(ErrConflict), ErrConflict) || !errors.Is(RetryAfter(0, ErrGone), ErrGone) {
		t.Error("the cause is not found")
	}
}

func TestADurationIsRoundedUpToMilliseconds(t *testing.T) {
	for duration, want := range map[time.Duration]uint32{
		math.MinInt64: 0, -1: 0, 0: 0,
		1: 1, time.Millisecond: 1, time.Millisecond + 1: 2,
		math.MaxUint32 * time.Millisecond:   math.MaxUint32,
		math.MaxUint32*time.Millisecond + 1: math.MaxUint32,
		math.MaxInt64 - time.Millisecond:    math.MaxUint32,
		math.MaxInt64 - time.Millisecond/2:  math.MaxUint32,
		math.MaxInt64:                       math.MaxUint32,
	} {
		if got := milliseconds(duration); got != want {
			t.Errorf("%d ns: got %d, want %d", duration, got, want)
		}
	}
}

func show(failure types.Failure) string {
	switch failure.Tag() {
	case types.Failure_Retry:
		return "retry: " + failure.Retry()
	case types.Failure_RetryAfter:
		return fmt.Sprintf("after %d: %s", failure.RetryAfter().AfterMs, failure.RetryAfter().Message)
	default:
		return "terminal: " + failure.Terminal()
	}
}

func TestAPluginThatNeedsMoreThanItsWorldIsRefused(t *testing.T) {
	defer func(before string) { world = before }(world)
	reconciles := &Plugin{Reconciler: ReconcilerFunc(nil)}
	handles := &Plugin{watches: map[string]watch{"a": nil}}
	for _, c := range []struct {
		world  string
		plugin *Plugin
		fits   bool
	}{
		{"handler-plugin", reconciles, false}, {"reconciler-plugin", reconciles, true}, {"plugin", reconciles, true},
		{"handler-plugin", handles, true}, {"reconciler-plugin", handles, false}, {"", handles, true},
	} {
		world = c.world
		if err := worldFits(c.plugin); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.world, err)
		}
	}
}

func TestAPointerIsFollowedIntoText(t *testing.T) {
	text := `{"a": {"b/c": [1, {"d~": "e"}]}, "n": null}`
	for pointer, want := range map[string]string{
		"": text, "/a/b~1c/0": "1", Pointer("a", "b/c", "1", "d~"): `"e"`, "/n": "null",
		"/x": "none", "/a/b~1c/2": "none", "/a/b~1c/x": "none", "/n/x": "none",
	} {
		got, ok, err := at(text, pointer)
		if err != nil || ok != (want != "none") || ok && got != want {
			t.Errorf("%q: %q, %v, %v", pointer, got, ok, err)
		}
	}
	if _, _, err := at(text, "a"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unexpected error %v", err)
	}
}
