package host

import (
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Fault is an error of the contract.
type Fault struct {
	// Tag is a constant types.Error_*.
	Tag     uint8
	Message string
	// RetryAfterMs is the delay that the server asked for, or zero.
	RetryAfterMs uint32
}

// Error implements error.
func (f *Fault) Error() string {
	return f.Message
}

// Check turns a result of the bindings into a value and an error.
func Check[T any](result wit.Result[T, types.Error]) (value T, err error) {
	if result.IsOk() {
		return result.Ok(), nil
	}
	failed := result.Err()
	fault := &Fault{Tag: failed.Tag()}
	switch fault.Tag {
	case types.Error_NotFound:
		fault.Message = failed.NotFound()
	case types.Error_AlreadyExists:
		fault.Message = failed.AlreadyExists()
	case types.Error_Conflict:
		fault.Message = failed.Conflict()
	case types.Error_Forbidden:
		fault.Message = failed.Forbidden()
	case types.Error_Invalid:
		fault.Message = failed.Invalid()
	case types.Error_Throttled:
		info := failed.Throttled()
		fault.Message, fault.RetryAfterMs = info.Message, info.RetryAfterMs.SomeOr(0)
	case types.Error_Unavailable:
		fault.Message = failed.Unavailable()
	case types.Error_Timeout:
		fault.Message = failed.Timeout()
	case types.Error_Gone:
		fault.Message = failed.Gone()
	case types.Error_NotDeclared:
		fault.Message = failed.NotDeclared()
	case types.Error_NotSynced:
		fault.Message = failed.NotSynced()
	case types.Error_LimitExceeded:
		fault.Message = failed.LimitExceeded()
	case types.Error_Suspended:
		fault.Message = failed.Suspended()
	}
	return value, fault
}
