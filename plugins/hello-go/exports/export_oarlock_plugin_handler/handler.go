// Package export_oarlock_plugin_handler logs every notification.
package export_oarlock_plugin_handler

import (
	"fmt"
	"strconv"
	"sync"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"oarlock.dev/plugins/hello-go/gc"
	"oarlock.dev/plugins/hello-go/hello"
	cache "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_cache"
	config "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_config"
	event "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_event"
	handler "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_handler"
	log "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_log"
	types "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_types"
)

type (
	result = witTypes.Result[witTypes.Unit, types.Failure]
	fields = []witTypes.Option[string]
)

// OnAdd is called for every object that begins to match the subscription.
func OnAdd(added handler.Added) result {
	defer gc.Collect()
	notice := newNotice("add", added.Subscription, added.Object)
	notice.pair("initial", strconv.FormatBool(added.IsInInitialList))
	return answer(notice.finish(event.Version_New, added.Object, added.Fields))
}

// OnUpdate is called when such an object changes.
func OnUpdate(updated handler.Updated) result {
	defer gc.Collect()
	notice := newNotice("update", updated.Subscription, updated.Object)
	notice.pair("old-resource-version", updated.OldResourceVersion)
	notice.textPair("old-greeting", updated.OldFields[hello.Greeting])
	return answer(notice.finish(event.Version_New, updated.Object, updated.Fields))
}

// OnDelete is called when such an object is deleted, or ceases to match.
func OnDelete(deleted handler.Deleted) result {
	defer gc.Collect()
	notice := newNotice("delete", deleted.Subscription, deleted.Object)
	notice.pair("unknown", strconv.FormatBool(deleted.FinalStateUnknown))
	return answer(notice.finish(event.Version_Old, deleted.Object, deleted.Fields))
}

// OnSynced is called when all objects of the first list have been delivered.
func OnSynced(synced handler.Synced) result {
	defer gc.Collect()
	var notice notice
	notice.pair("type", "synced")
	notice.pair("subscription", synced.Subscription)
	notice.pair("remaining", strconv.FormatUint(uint64(synced.Remaining), 10))
	notice.log()
	return answer(nil)
}

// answer asks the host to call again later if there was an error.
func answer(err error) result {
	if err != nil {
		return witTypes.Err[witTypes.Unit](types.MakeFailureRetry(err.Error()))
	}
	return witTypes.Ok[witTypes.Unit, types.Failure](witTypes.Unit{})
}

// notice holds the pairs of the log line.
type notice []types.Entry

func newNotice(kind, subscription string, object types.ObjectRef) notice {
	return notice{
		{Name: "type", Value: kind},
		{Name: "subscription", Value: subscription},
		{Name: "namespace", Value: object.Namespace},
		{Name: "name", Value: object.Name},
		{Name: "uid", Value: object.Uid},
		{Name: "resource-version", Value: object.ResourceVersion},
	}
}

// finish adds values from the declared fields, the event and the cache, and logs the line.
func (n *notice) finish(which event.Version, object types.ObjectRef, fields fields) error {
	n.textPair("greeting", fields[hello.Greeting])
	created := event.Field(which, "/metadata/creationTimestamp")
	if created.IsErr() {
		return fmt.Errorf("cannot read the event: %v", created.Err())
	}
	n.textPair("created", created.Ok())
	cached, err := isCached(object)
	if err != nil {
		return err
	}
	n.pair("cached", strconv.FormatBool(cached))
	n.log()
	return nil
}

func (n *notice) pair(name, value string) {
	*n = append(*n, types.Entry{Name: name, Value: value})
}

// textPair adds the string value of a field, if it has one.
func (n *notice) textPair(name string, field witTypes.Option[string]) {
	if text, ok := hello.Text(field); ok {
		n.pair(name, text)
	}
}

func (n *notice) log() {
	if !isQuiet() {
		log.Log(log.Level_Info, "notified", *n)
	}
}

// isCached returns whether the cache has the object with this uid, and not a later object of the same name.
func isCached(object types.ObjectRef) (bool, error) {
	key := types.ObjectKey{Namespace: object.Namespace, Name: object.Name}
	row := cache.Get(hello.Name, key, types.MakeProjectionFields([]string{"/metadata/uid"}))
	if row.IsErr() {
		if row.Err().Tag() == types.Error_NotFound {
			return false, nil
		}
		return false, fmt.Errorf("cannot read the cache: %v", row.Err())
	}
	uid, ok := hello.Text(row.Ok().Fields[0])
	return ok && uid == object.Uid, nil
}

// isQuiet returns whether the configuration has `quiet: true`, which turns the log off.
var isQuiet = sync.OnceValue(func() bool {
	quiet := config.Get("/quiet")
	return quiet.IsOk() && quiet.Ok().SomeOr("") == "true"
})
