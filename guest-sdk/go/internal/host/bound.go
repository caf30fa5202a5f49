//go:build wasip1

package host

import (
	"oarlock.dev/sdk/internal/collector"
	cache "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_cache"
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	clock "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_clock"
	config "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_config"
	event "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_event"
	events "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_events"
	log "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_log"
	metrics "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metrics"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	"oarlock.dev/sdk/internal/wit/runtime"
	wit "oarlock.dev/sdk/internal/wit/types"
)

func init() {
	collector.Start()
	Install(&Imports{
		Event: boundEvent{}, Cache: boundCache{}, Client: CollectingClient{boundClient{}}, Queue: boundQueue{},
		Output: ValidOutput{boundOutput{}}, Clock: boundClock{},
		Config: func() string { return before(config.Json)() },
	})
}

// before collects garbage, if there is much, and returns the function of the host to call.
func before[F any](function F) F {
	collector.BeforeCall()
	return function
}

// after unpins the answer of the host, which Go's own references keep now, and counts its bytes.
func after[T any](result wit.Result[T, types.Error], bytes func(T) int) (T, error) {
	runtime.Unpin()
	value, err := Check(result)
	if err == nil {
		collector.Received(bytes(value))
	}
	return value, err
}

func done(result wit.Result[wit.Unit, types.Error]) error {
	_, err := after(result, none)
	return err
}

func none[T any](T) int { return 0 }

func ofText(text Text) int { return len(text.SomeOr("")) }

func ofTexts(texts []Text) (bytes int) {
	for _, text := range texts {
		bytes += ofText(text)
	}
	return bytes
}

func ofRow(row types.Row) int { return 256 + ofTexts(row.Fields) + ofText(row.Json) }

func ofPage(page types.Page) (bytes int) {
	for _, row := range page.Rows {
		bytes += ofRow(row)
	}
	return bytes
}

type boundEvent struct{}

func (boundEvent) Field(which uint8, pointer string) (Text, error) {
	return after(before(event.Field)(which, pointer), ofText)
}

func (boundEvent) Fields(which uint8, pointers []string) ([]Text, error) {
	return after(before(event.Fields)(which, pointers), ofTexts)
}

func (boundEvent) JSON(which uint8) (string, error) {
	return after(before(event.Json)(which), func(text string) int { return len(text) })
}

type boundCache struct{}

func (boundCache) Get(lister string, key types.ObjectKey, projection types.Projection) (types.Row, error) {
	return after(before(cache.Get)(lister, key, projection), ofRow)
}

func (boundCache) List(lister string, namespaces types.Namespaces, selector string, projection types.Projection, page types.PageRequest) (types.Page, error) {
	return after(before(cache.List)(lister, namespaces, selector, projection, page), ofPage)
}

func (boundCache) ByIndex(index, value string, namespaces types.Namespaces, projection types.Projection, page types.PageRequest) (types.Page, error) {
	return after(before(cache.ByIndex)(index, value, namespaces, projection, page), ofPage)
}

func (boundCache) IndexValues(index string) ([]string, error) {
	return after(before(cache.IndexValues)(index), func(values []string) int { return 32 * len(values) })
}

func (boundCache) HasSynced(lister string) (bool, error) {
	return after(before(cache.HasSynced)(lister), none)
}

func (boundCache) WaitUntilSeen(lister, resourceVersion string, timeoutMs uint32) error {
	return done(before(cache.WaitUntilSeen)(lister, resourceVersion, timeoutMs))
}

type boundClient struct{}

func (boundClient) Get(target types.GroupVersionResource, key types.ObjectKey, subresource string) (string, error) {
	return after(client.Get(target, key, subresource), func(text string) int { return len(text) })
}

func (boundClient) List(target types.GroupVersionResource, namespaces types.Namespaces, labels, fields string, projection types.Projection, page types.PageRequest) (types.Page, error) {
	return after(client.List(target, namespaces, labels, fields, projection, page), ofPage)
}

func (boundClient) Create(target types.GroupVersionResource, namespace, json string) (client.Written, error) {
	return after(client.Create(target, namespace, json), none)
}

func (boundClient) Apply(target types.GroupVersionResource, key types.ObjectKey, subresource, json string, force bool, preconditions client.Preconditions) (client.Written, error) {
	return after(client.Apply(target, key, subresource, json, force, preconditions), none)
}

func (boundClient) Patch(target types.GroupVersionResource, key types.ObjectKey, subresource string, kind uint8, body string, preconditions client.Preconditions) (client.Written, error) {
	return after(client.Patch(target, key, subresource, kind, body, preconditions), none)
}

func (boundClient) Replace(target types.GroupVersionResource, key types.ObjectKey, subresource, json string) (client.Written, error) {
	return after(client.Replace(target, key, subresource, json), none)
}

func (boundClient) Delete(target types.GroupVersionResource, key types.ObjectKey, propagation uint8, gracePeriod wit.Option[uint32], preconditions client.Preconditions) error {
	return done(client.Delete(target, key, propagation, gracePeriod, preconditions))
}

type boundQueue struct{}

func (boundQueue) Add(key queue.WorkKey) error {
	return done(before(queue.Add)(key))
}

func (boundQueue) AddAfter(key queue.WorkKey, delayMs uint32) error {
	return done(before(queue.AddAfter)(key, delayMs))
}

type boundOutput struct{}

func (boundOutput) Emit(target types.GroupVersionResource, regarding types.ObjectRef, kind string, eventType uint8, reason, note string) error {
	return done(before(events.Emit)(target, regarding, kind, eventType, reason, note))
}

func (boundOutput) CounterAdd(name string, by float64, labels []types.Entry) error {
	return done(before(metrics.CounterAdd)(name, by, labels))
}

func (boundOutput) GaugeSet(name string, value float64, labels []types.Entry) error {
	return done(before(metrics.GaugeSet)(name, value, labels))
}

func (boundOutput) Log(level uint8, message string, pairs []types.Entry) {
	before(log.Log)(level, message, pairs)
}

func (boundOutput) Enabled(level uint8) bool {
	return log.Enabled(level)
}

type boundClock struct{}

func (boundClock) Now() clock.Datetime { return clock.Now() }

func (boundClock) ElapsedMs() float64 { return clock.ElapsedMs() }
