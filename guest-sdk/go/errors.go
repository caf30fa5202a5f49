package oarlock

import (
	"errors"
	"math"
	"time"

	"oarlock.dev/sdk/internal/host"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// The kinds of errors of the host, for errors.Is.
var (
	// ErrNotFound means that there is no such object, field or resource.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists means that an object of that name exists.
	ErrAlreadyExists = errors.New("already exists")
	// ErrConflict means that the object changed since it was read, or that a precondition does not hold.
	ErrConflict = errors.New("conflict")
	// ErrForbidden means that the plugin's ServiceAccount may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid means that the request itself is wrong.
	ErrInvalid = errors.New("invalid")
	// ErrThrottled means that a rate limit is exceeded, or that a queue of the host is full.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable means that the API server cannot be reached. As far as the host knows, nothing was
	// changed.
	ErrUnavailable = errors.New("unavailable")
	// ErrTimeout means that there was no answer in time. A write may have happened.
	ErrTimeout = errors.New("timeout")
	// ErrGone means that the thing asked for no longer exists, such as the next page of a list.
	ErrGone = errors.New("gone")
	// ErrNotDeclared means that setup did not declare this lister or index.
	ErrNotDeclared = errors.New("not declared")
	// ErrNotSynced means that the cache has not synced.
	ErrNotSynced = errors.New("not synced")
	// ErrLimitExceeded means that a limit of the contract, or of the plugin's file, is exceeded.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrSuspended means that the operator has suspended the plugin's writes.
	ErrSuspended = errors.New("suspended")
)

// kinds has the kinds by their tags in the contract.
var kinds = map[uint8]error{
	types.Error_NotFound:      ErrNotFound,
	types.Error_AlreadyExists: ErrAlreadyExists,
	types.Error_Conflict:      ErrConflict,
	types.Error_Forbidden:     ErrForbidden,
	types.Error_Invalid:       ErrInvalid,
	types.Error_Throttled:     ErrThrottled,
	types.Error_Unavailable:   ErrUnavailable,
	types.Error_Timeout:       ErrTimeout,
	types.Error_Gone:          ErrGone,
	types.Error_NotDeclared:   ErrNotDeclared,
	types.Error_NotSynced:     ErrNotSynced,
	types.Error_LimitExceeded: ErrLimitExceeded,
	types.Error_Suspended:     ErrSuspended,
}

// Error is an error of the host, for errors.As.
type Error struct {
	// Kind is one of ErrNotFound, ErrConflict and so on.
	Kind error
	// Message names the object or pointer.
	Message string
	// RetryAfter is the delay that the API server asked for, of ErrThrottled; else 0.
	RetryAfter time.Duration
}

// Error returns the kind and the message.
func (e *Error) Error() string { return e.Kind.Error() + ": " + e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// fault returns the error of the SDK for one of the host.
func fault(err error) error {
	var failed *host.Fault
	if !errors.As(err, &failed) {
		return err
	}
	return &Error{
		Kind:       kinds[failed.Tag],
		Message:    failed.Message,
		RetryAfter: time.Duration(failed.RetryAfterMs) * time.Millisecond,
	}
}

// IgnoreNotFound returns nil if err is ErrNotFound, else err.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// RetryAfter returns an error after which the host repeats the call, with back-off, but not before this
// delay; at most an hour. Any error without such a wish is repeated with back-off, at first after 200 ms.
// It returns nil if err is nil.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfter{delay, err}
}

// Terminal returns an error after which the host does not repeat the call: it parks the object or key.
// ErrInvalid, ErrNotDeclared and ErrLimitExceeded are terminal unless they are in a RetryAfter. It returns
// nil if err is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminal{err}
}

type retryAfter struct {
	delay time.Duration
	err   error
}

func (e *retryAfter) Error() string { return e.err.Error() }
func (e *retryAfter) Unwrap() error { return e.err }

type terminal struct{ err error }

func (e *terminal) Error() string { return e.err.Error() }
func (e *terminal) Unwrap() error { return e.err }

// failure returns what the host does about an error.
func failure(err error) types.Failure {
	// The host ends an instance that passes something else than UTF-8.
	message := host.Valid(err.Error())
	var later *retryAfter
	var never *terminal
	var failed *Error
	switch {
	case errors.As(err, &never):
		return types.MakeFailureTerminal(message)
	case errors.As(err, &later):
		return types.MakeFailureRetryAfter(types.RetryInfo{Message: message, AfterMs: milliseconds(later.delay)})
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrNotDeclared), errors.Is(err, ErrLimitExceeded):
		return types.MakeFailureTerminal(message)
	case errors.As(err, &failed) && failed.RetryAfter > 0:
		return types.MakeFailureRetryAfter(types.RetryInfo{Message: message, AfterMs: milliseconds(failed.RetryAfter)})
	default:
		return types.MakeFailureRetry(message)
	}
}

// milliseconds returns a duration in whole milliseconds, rounded up, within the bounds of the contract.
func milliseconds(duration time.Duration) uint32 {
	rounded := duration / time.Millisecond
	if duration%time.Millisecond > 0 {
		rounded++
	}
	return uint32(min(max(rounded, 0), math.MaxUint32))
}
