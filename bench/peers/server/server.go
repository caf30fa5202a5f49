// Package server is a synthetic Kubernetes API server for informers. It prepares all bytes before the first
// request.
//
// It lists (in pages, or whole), watches and watch-lists, as JSON and as Protobuf, objects and their metadata
// alone. Watches wait at a gate that a control endpoint opens; then all events come as fast as they are read,
// each a chunk of HTTP/1.1 as from the real server, or at a steady rate, and the watch stays open.
package server

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"oarlock.dev/bench-peers/corpus"
)

type server struct {
	resources map[string]*resource
	gate      *gate
	cluster   *cluster
}

// Run serves until the process ends. It prints its address to stdout.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	pods := flags.Int("pods", 10_000, "how many Pods there are")
	events := flags.Int("events", 200_000, "how often Pods change")
	small := flags.Int("small", 0, "how many small objects there are, as ConfigMaps")
	seed := flags.Uint64("seed", corpus.Seed, "which Pods")
	writeDelay := flags.Duration("write-delay", 0, "how long a write takes")
	listen := flags.String("listen", "127.0.0.1:0", "where")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// Nearly all of it is bytes that stay.
	debug.SetGCPercent(25)
	s := &server{
		resources: map[string]*resource{
			"pods":       {name: "pods", kind: "Pod", seed: *seed, n: *pods, events: *events},
			"configmaps": {name: "configmaps", kind: "ConfigMap", seed: *seed, n: *small},
		},
		gate:    newGate(),
		cluster: &cluster{writeDelay: *writeDelay},
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]string{"event": "ready", "url": "http://" + listener.Addr().String()})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, string(line))
	return http.Serve(listener, s.routes())
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/{resource}", s.serve)
	mux.HandleFunc("GET /control/{resource}/plan", s.plan)
	mux.HandleFunc("POST /control/start", s.start)
	mux.HandleFunc("POST /control/reset", func(http.ResponseWriter, *http.Request) { s.gate.reset(nil) })
	mux.HandleFunc("POST /control/expire", func(http.ResponseWriter, *http.Request) { s.gate.reset(expired) })
	s.cluster.routes(mux)
	return mux
}

// start starts the events: all at once, or, with a rate, one after the other at so many a second. With `at`,
// the first event is sent at that time, in milliseconds since 1970.
func (s *server) start(_ http.ResponseWriter, request *http.Request) {
	rate, _ := strconv.ParseFloat(request.FormValue("rate"), 64)
	at := time.Now()
	if ms, err := strconv.ParseInt(request.FormValue("at"), 10, 64); err == nil {
		at = time.UnixMilli(ms)
	}
	s.gate.start(rate, at)
}

// expired is the last event of a watch whose version is too old.
var expired = []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}`)

// plan prepares the resource in one form, with at most the given number of events, and answers with the plan
// of the run.
func (s *server) plan(w http.ResponseWriter, request *http.Request) {
	resource, ok := s.resources[request.PathValue("resource")]
	if !ok {
		http.NotFound(w, request)
		return
	}
	e := resource.in(form(request.FormValue("form")))
	events := len(e.events)
	if limit, err := strconv.Atoi(request.FormValue("events")); err == nil && limit < events {
		events = limit
		s.gate.shorten(limit)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"objects":               len(e.objects),
		"events":                events,
		"last_resource_version": strconv.Itoa(corpus.FirstVersion + events),
	})
}

func (s *server) serve(w http.ResponseWriter, request *http.Request) {
	resource, ok := s.resources[request.PathValue("resource")]
	if !ok {
		http.NotFound(w, request)
		return
	}
	f := accepted(request.Header.Get("Accept"))
	query := request.URL.Query()
	if watch := query.Get("watch"); watch != "" && watch != "0" && watch != "false" {
		s.watch(w, resource, f, query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true")
		return
	}
	objects := resource.in(f).objects
	offset, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	end, next := len(objects), ""
	if limit > 0 && offset+limit < end {
		end = offset + limit
		next = strconv.Itoa(end)
	}
	page := f.list(resource.kind, strconv.Itoa(corpus.FirstVersion), next, objects[offset:end])
	w.Header().Set("Content-Type", f.contentType(false))
	w.Write(page)
}

// accepted returns the first accepted format, as the real server does.
func accepted(accept string) form {
	first, _, _ := strings.Cut(accept, ",")
	isMetadata := strings.Contains(first, "as=PartialObjectMetadata")
	isProtobuf := strings.Contains(first, "application/vnd.kubernetes.protobuf")
	switch {
	case isMetadata && isProtobuf:
		return formMetadataProtobuf
	case isMetadata:
		return formMetadataJSON
	case isProtobuf:
		return formProtobuf
	default:
		return formJSON
	}
}
