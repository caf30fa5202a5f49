package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"oarlock.dev/bench-peers/corpus"
)

// blockSize is the size of one write.
const blockSize = 256 << 10

// stream is the connection of a watch.
type stream struct {
	connection net.Conn
	form       form
	kind       string
	block      []byte
	scratch    []byte
}

// watch takes the connection over: what net/http would do per chunk is more than the clients under test do.
func (s *server) watch(w http.ResponseWriter, resource *resource, f form, version string, sendsInitial bool) {
	e := resource.in(f)
	phase := s.gate.current()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "not HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, connection)
	}()
	to := &stream{connection: connection, form: f, kind: resource.kind}
	to.block = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nCache-Control: no-cache, private\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n", f.contentType(true))
	next := 0
	if sendsInitial {
		for _, object := range e.objects {
			if to.send("ADDED", object) != nil {
				return
			}
		}
		if to.send("BOOKMARK", f.encode(bookmark(resource.kind))) != nil {
			return
		}
	} else if from, err := strconv.Atoi(version); err == nil && from > corpus.FirstVersion {
		next = min(from-corpus.FirstVersion, len(e.events))
	}
	if to.flush() != nil {
		return
	}
	select {
	case <-gone:
		return
	case <-phase.ended:
		to.end(phase.reason)
		return
	case <-phase.started:
	}
	events := e.events
	if phase.limit > 0 {
		events = events[:phase.limit]
	}
	for i, event := range events[min(next, len(events)):] {
		if phase.rate > 0 && !phase.wait(i, gone) {
			return
		}
		if to.send("MODIFIED", event) != nil || phase.rate > 0 && to.flush() != nil {
			return
		}
	}
	if to.flush() != nil {
		return
	}
	select {
	case <-gone:
	case <-phase.ended:
		to.end(phase.reason)
	}
}

// bookmark ends the initial events of a watch-list.
func bookmark(kind string) object {
	meta := metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(corpus.FirstVersion),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}
	typed := metav1.TypeMeta{APIVersion: "v1", Kind: kind}
	if kind == "Pod" {
		return &corev1.Pod{TypeMeta: typed, ObjectMeta: meta}
	}
	return &corev1.ConfigMap{TypeMeta: typed, ObjectMeta: meta}
}

// send puts one event into the block, in a chunk of its own, and writes the block when it is full.
func (s *stream) send(typ string, object []byte) error {
	s.scratch = s.form.appendEvent(s.scratch[:0], typ, s.kind, object)
	s.block = appendChunk(s.block, s.scratch)
	if len(s.block) < blockSize {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	_, err := s.connection.Write(s.block)
	s.block = s.block[:0]
	return err
}

// end sends the last event, if there is one to send in this form, and the last chunk.
func (s *stream) end(reason []byte) {
	if reason != nil && s.form.isJSON() && json.Valid(reason) {
		s.scratch = s.form.appendEvent(s.scratch[:0], "ERROR", s.kind, reason)
		s.block = appendChunk(s.block, s.scratch)
	}
	s.block = append(s.block, "0\r\n\r\n"...)
	s.flush()
}
