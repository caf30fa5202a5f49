package oarlocktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/internal/host"
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	clock "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_clock"
	event "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_event"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	wit "oarlock.dev/sdk/internal/wit/types"
)

func (h *Host) imports() *host.Imports {
	return &host.Imports{
		Event: eventOf{h}, Cache: cacheOf{h}, Client: clientOf{h}, Queue: queueOf{h}, Output: outputOf{h}, Clock: clockOf{h},
		Config: func() string { return h.config },
	}
}

func failed(kind error, format string, arguments ...any) error {
	return &oarlock.Error{Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

type eventOf struct{ *Host }

func (h eventOf) state(which uint8) (object, error) {
	var state object
	if h.event != nil {
		state = map[uint8]object{event.Version_Old: h.event.old, event.Version_New: h.event.new}[which]
	}
	if state == nil {
		return nil, failed(oarlock.ErrNotFound, "the notification has no such state")
	}
	return state, nil
}

func (h eventOf) Field(which uint8, pointer string) (host.Text, error) {
	state, err := h.state(which)
	return state.text(pointer), err
}

func (h eventOf) Fields(which uint8, pointers []string) ([]host.Text, error) {
	state, err := h.state(which)
	return state.texts(pointers), err
}

func (h eventOf) JSON(which uint8) (string, error) {
	state, err := h.state(which)
	return encode(state), err
}

type cacheOf struct{ *Host }

// lister returns the read of a name, and notes that the key being reconciled reads through it.
func (h cacheOf) lister(name string) (metadata.Read, error) {
	for _, read := range h.description.Reads {
		if read.Name == name {
			if h.running != nil && read.Wakes {
				h.waking[*h.running] = append(h.waking[*h.running], name)
			}
			return read, nil
		}
	}
	return metadata.Read{}, failed(oarlock.ErrNotDeclared, "no lister is named %q", name)
}

func (h cacheOf) index(name string) (metadata.Index, metadata.Read, error) {
	for _, index := range h.description.Indices {
		if index.Name == name {
			read, err := h.lister(index.Lister)
			return index, read, err
		}
	}
	return metadata.Index{}, metadata.Read{}, failed(oarlock.ErrNotDeclared, "no index is named %q", name)
}

func (h cacheOf) Get(lister string, key types.ObjectKey, projection types.Projection) (types.Row, error) {
	read, err := h.lister(lister)
	if err != nil {
		return types.Row{}, err
	}
	found := h.cluster.get(targetOf(read.Target), oarlock.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if found == nil || !isIn(read.Namespaces, found.key()) {
		return types.Row{}, failed(oarlock.ErrNotFound, "no %s %s/%s", read.Target.Plural, key.Namespace, key.Name)
	}
	return row(found, projection), nil
}

func (h cacheOf) List(lister string, namespaces types.Namespaces, selector string, projection types.Projection, _ types.PageRequest) (types.Page, error) {
	read, err := h.lister(lister)
	return h.page(read, projection, func(o object) bool {
		return isIn(namespaces, o.key()) && selects(selector, o.labels())
	}), err
}

func (h cacheOf) ByIndex(index, value string, namespaces types.Namespaces, projection types.Projection, _ types.PageRequest) (types.Page, error) {
	found, read, err := h.index(index)
	return h.page(read, projection, func(o object) bool {
		return isIn(namespaces, o.key()) && slices.Contains(indexed(found, o), value)
	}), err
}

func (h cacheOf) IndexValues(index string) ([]string, error) {
	found, read, err := h.index(index)
	var values []string
	for _, o := range h.cluster.all(targetOf(read.Target)) {
		if isIn(read.Namespaces, o.key()) {
			values = append(values, indexed(found, o)...)
		}
	}
	slices.Sort(values)
	return slices.Compact(values), err
}

func (h cacheOf) HasSynced(lister string) (bool, error) {
	_, err := h.lister(lister)
	return err == nil, err
}

func (h cacheOf) WaitUntilSeen(lister, _ string, _ uint32) error {
	_, err := h.lister(lister)
	return err
}

func (h cacheOf) page(read metadata.Read, projection types.Projection, isWanted func(object) bool) types.Page {
	var page types.Page
	if read.Name == "" {
		return page
	}
	for _, o := range h.cluster.all(targetOf(read.Target)) {
		if isIn(read.Namespaces, o.key()) && isWanted(o) {
			page.Rows = append(page.Rows, row(o, projection))
		}
	}
	return page
}

func indexed(index metadata.Index, o object) (values []string) {
	var found []any
	switch index.Source.Tag() {
	case metadata.IndexSource_Label:
		if value, ok := o.labels()[index.Source.Label()]; ok {
			return []string{value}
		}
	case metadata.IndexSource_OwnerUid:
		found = atAll(map[string]any(o), "/metadata/ownerReferences/*/uid")
	default:
		found = atAll(map[string]any(o), index.Source.Pointer())
	}
	for _, value := range found {
		switch value := value.(type) {
		case string:
			values = append(values, value)
		case bool, float64:
			values = append(values, encode(value))
		}
	}
	return values
}

func row(o object, projection types.Projection) types.Row {
	made := types.Row{Object: o.ref(), Json: wit.None[string]()}
	switch projection.Tag() {
	case types.Projection_Fields:
		made.Fields = o.texts(projection.Fields())
	case types.Projection_Json:
		made.Json = wit.Some(encode(o))
	}
	return made
}

type queueOf struct{ *Host }

func (h queueOf) Add(key queue.WorkKey) error {
	h.add(keyFromWit(key))
	return nil
}

func (h queueOf) AddAfter(key queue.WorkKey, delayMs uint32) error {
	h.addAfter(keyFromWit(key), time.Duration(delayMs)*time.Millisecond)
	return nil
}

type outputOf struct{ *Host }

func (h outputOf) Emit(_ types.GroupVersionResource, regarding types.ObjectRef, kind string, eventType uint8, reason, note string) error {
	h.events = append(h.events, Event{
		Kind: kind, Key: oarlock.ObjectKey{Namespace: regarding.Namespace, Name: regarding.Name},
		Type: oarlock.EventType(eventType), Reason: reason, Note: note,
	})
	return nil
}

func (h outputOf) CounterAdd(name string, by float64, labels []types.Entry) error {
	if by < 0 {
		return failed(oarlock.ErrInvalid, "the counter %s cannot decrease", name)
	}
	h.metrics[series(name, labels)] += by
	return nil
}

func (h outputOf) GaugeSet(name string, value float64, labels []types.Entry) error {
	h.metrics[series(name, labels)] = value
	return nil
}

func series(name string, labels []types.Entry) string {
	if len(labels) == 0 {
		return name
	}
	var pairs []string
	for _, label := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label.Name, label.Value))
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func (h outputOf) Log(level uint8, message string, pairs []types.Entry) {
	line := Log{Level: [...]string{"trace", "debug", "info", "warn", "error"}[level], Message: message, Pairs: map[string]string{}}
	for _, pair := range pairs {
		line.Pairs[pair.Name] = pair.Value
	}
	h.logs = append(h.logs, line)
}

func (h outputOf) Enabled(uint8) bool { return true }

type clockOf struct{ *Host }

func (h clockOf) Now() clock.Datetime {
	return clock.Datetime{Seconds: uint32(h.now.Unix()), Nanoseconds: uint32(h.now.Nanosecond())}
}

func (h clockOf) ElapsedMs() float64 {
	return float64(h.now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds())
}

type clientOf struct{ *Host }

func (h clientOf) Get(target types.GroupVersionResource, key types.ObjectKey, _ string) (string, error) {
	found := h.cluster.get(targetOf(target), oarlock.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if found == nil {
		return "", failed(oarlock.ErrNotFound, "no %s %s/%s", target.Plural, key.Namespace, key.Name)
	}
	return encode(found), nil
}

func (h clientOf) List(target types.GroupVersionResource, namespaces types.Namespaces, labels, fields string, projection types.Projection, request types.PageRequest) (types.Page, error) {
	if fields != "" {
		return types.Page{}, errors.New("oarlocktest has no field selectors")
	}
	var page types.Page
	var length int
	for _, o := range h.cluster.all(targetOf(target)) {
		at := place(o.key())
		if !isIn(namespaces, o.key()) || !selects(labels, o.labels()) || at <= request.ContinueToken {
			continue
		}
		if len(page.Rows) == int(request.Limit) {
			last := page.Rows[len(page.Rows)-1].Object
			page.ContinueToken = place(oarlock.ObjectKey{Namespace: last.Namespace, Name: last.Name})
			break
		}
		made := row(o, projection)
		if length += textOf(made); length > longestPage {
			return types.Page{}, failed(oarlock.ErrLimitExceeded, "the rows have more than %d bytes; ask for fewer rows than %d", longestPage, request.Limit)
		}
		page.Rows = append(page.Rows, made)
	}
	return page, nil
}

// longestPage is the maximum length of the texts of a page, as in the host.
const longestPage = 4 << 20

// textOf returns the length of the texts of a row.
func textOf(row types.Row) int {
	length := len(row.Json.SomeOr(""))
	for _, field := range row.Fields {
		length += len(field.SomeOr(""))
	}
	return length
}

func (h clientOf) Create(target types.GroupVersionResource, namespace, json string) (client.Written, error) {
	made, _ := objectFrom(parse(json))
	if made == nil || made.key().Name == "" {
		return client.Written{}, failed(oarlock.ErrInvalid, "the object has no name")
	}
	made.metadata()["namespace"] = namespace
	if namespace == "" {
		delete(made.metadata(), "namespace")
	}
	return h.write("create", target, made.key(), "", made, client.Preconditions{}, func(there object) (object, error) {
		if there != nil {
			return nil, failed(oarlock.ErrAlreadyExists, "%s %v exists", target.Plural, made.key())
		}
		return made, nil
	})
}
