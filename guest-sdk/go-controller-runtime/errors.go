package oarlockctrl

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oarlock "oarlock.dev/sdk"
)

// statuses are the answers of an API server for the kinds of errors of the host.
var statuses = []struct {
	kind   error
	code   int32
	reason metav1.StatusReason
}{
	{oarlock.ErrNotFound, http.StatusNotFound, metav1.StatusReasonNotFound},
	{oarlock.ErrAlreadyExists, http.StatusConflict, metav1.StatusReasonAlreadyExists},
	{oarlock.ErrConflict, http.StatusConflict, metav1.StatusReasonConflict},
	{oarlock.ErrForbidden, http.StatusForbidden, metav1.StatusReasonForbidden},
	{oarlock.ErrInvalid, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid},
	{oarlock.ErrThrottled, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
	{oarlock.ErrUnavailable, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	{oarlock.ErrTimeout, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
	{oarlock.ErrGone, http.StatusGone, metav1.StatusReasonExpired},
	{oarlock.ErrLimitExceeded, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge},
	{oarlock.ErrSuspended, http.StatusForbidden, metav1.StatusReasonForbidden},
}

// hostError is an error of the host that looks like one of the API server: for apierrors.IsNotFound as for
// errors.Is(err, oarlock.ErrNotFound).
type hostError struct {
	apierrors.StatusError
	cause error
}

// Unwrap returns the host's error.
func (e *hostError) Unwrap() error { return e.cause }

// fault returns the error for a reconciler.
func fault(err error) error {
	var failed *oarlock.Error
	if !errors.As(err, &failed) {
		return err
	}
	for _, status := range statuses {
		if !errors.Is(failed.Kind, status.kind) {
			continue
		}
		made := &hostError{cause: err}
		made.ErrStatus = metav1.Status{
			Status: metav1.StatusFailure, Code: status.code, Reason: status.reason, Message: failed.Message,
		}
		if failed.RetryAfter > 0 {
			made.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(failed.RetryAfter.Seconds() + 0.999)}
		}
		return made
	}
	return err
}
