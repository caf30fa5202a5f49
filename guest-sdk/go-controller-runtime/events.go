package oarlockctrl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	oarlock "oarlock.dev/sdk"
)

// longestNote is the number of bytes that the note of an Event has at most in the API group events.k8s.io,
// which the host uses. The older API group, which controller-runtime may use, takes longer messages.
const longestNote = 1024

// events records Events through the host. Annotations of Events are dropped, and long messages are cut.
type events struct {
	*hosted
}

// Event records an Event.
func (e *events) Event(object runtime.Object, eventType, reason, message string) {
	obj, ok := object.(ctrlclient.Object)
	if !ok {
		e.GetLogger().Info("no Event recorded: not an object", "type", fmt.Sprintf("%T", object))
		return
	}
	kind, err := apiutil.GVKForObject(obj, e.scheme)
	if err == nil {
		recorder := oarlock.Recorder{Target: e.mapper.resource(kind), Kind: kind.Kind}
		of := oarlock.Normal
		if eventType == corev1.EventTypeWarning {
			of = oarlock.Warning
		}
		err = recorder.Event(refOf(obj), of, reason, cut(message))
	}
	if err != nil {
		e.GetLogger().Error(err, "no Event recorded", "reason", reason)
	}
}

// Eventf records an Event.
func (e *events) Eventf(object runtime.Object, eventType, reason, format string, arguments ...any) {
	e.Event(object, eventType, reason, fmt.Sprintf(format, arguments...))
}

// AnnotatedEventf records an Event.
func (e *events) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, arguments ...any) {
	e.Eventf(object, eventType, reason, format, arguments...)
}

// newEvents has the methods of the newer recorders. The host knows no action and no related object.
type newEvents struct {
	events events
}

// Eventf records an Event.
func (e *newEvents) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, arguments ...any) {
	e.events.Eventf(regarding, eventType, reason, note, arguments...)
}

// AnnotatedEventf records an Event.
func (e *newEvents) AnnotatedEventf(regarding, _ runtime.Object, _ map[string]string, eventType, reason, _, note string, arguments ...any) {
	e.events.Eventf(regarding, eventType, reason, note, arguments...)
}

// cut returns the begin of a message, at the end of a character.
func cut(message string) string {
	// The host takes UTF-8 only, in which a replaced byte is longer.
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= longestNote {
		return message
	}
	end := longestNote
	for end > longestNote-utf8.UTFMax && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

func refOf(obj ctrlclient.Object) oarlock.ObjectRef {
	return oarlock.ObjectRef{
		ObjectKey:       oarlock.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		UID:             string(obj.GetUID()),
		ResourceVersion: obj.GetResourceVersion(),
	}
}
