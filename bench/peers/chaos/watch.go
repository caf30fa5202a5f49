package chaos

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// meanEvents is the mean number of events of a watch before a fault.
const meanEvents = 20_000

// watch streams events until a fault.
func (s *server) watch(w http.ResponseWriter, from string, sendsInitial bool) {
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
	s.mutex.Lock()
	s.watches[connection] = true
	s.mutex.Unlock()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, connection)
	}()
	defer func() {
		s.mutex.Lock()
		delete(s.watches, connection)
		s.mutex.Unlock()
	}()
	to := &lines{server: s, connection: connection}
	to.block = append(to.block, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"...)
	at, _ := strconv.Atoi(from)
	if sendsInitial {
		states, version := s.cluster.snapshot()
		for _, each := range states {
			to.event(each)
		}
		at = version
		to.bookmark(at, true)
	}
	left := s.cluster.dice(2 * meanEvents)
	for n := 0; to.err == nil; n++ {
		events, isGone, isOver := s.cluster.next(at)
		if isGone {
			to.text(`{"type":"ERROR","object":` + statusText(http.StatusGone, "Expired", "too old resource version") + "}\n")
			to.end()
			return
		}
		for _, each := range events {
			to.event(each)
			at = each.state.version
		}
		if isOver {
			to.bookmark(at, false)
			to.flush()
			select {
			case <-gone:
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if n%64 == 0 {
			to.bookmark(at, false)
		}
		if left -= len(events); left <= 0 && s.fault(to, gone) {
			return
		}
	}
}

// fault injects a fault into a watch; returns true if it ends the watch.
func (s *server) fault(to *lines, gone <-chan struct{}) bool {
	switch s.cluster.dice(8) {
	case 0:
		s.note("clean end")
		to.end()
	case 1:
		s.note("expired")
		to.text(`{"type":"ERROR","object":` + statusText(http.StatusGone, "Expired", "too old resource version") + "}\n")
		to.end()
	case 2:
		s.note("internal error")
		to.text(`{"type":"ERROR","object":` + statusText(http.StatusInternalServerError, "InternalError", "boom") + "}\n")
		to.end()
	case 3:
		s.note("garbage")
		to.text("{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",]]\x00\n")
		to.end()
	case 4:
		s.note("half a line")
		to.flush()
		fmt.Fprintf(to.connection, "ff\r\n{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\"")
	case 5:
		s.note("reset")
		if tcp, ok := to.connection.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
	case 6:
		s.note("silence")
		to.flush()
		<-gone
	default:
		s.note("broken chunk")
		to.flush()
		fmt.Fprint(to.connection, "zz\r\n")
	}
	return true
}

// lines is the body of the answer, one chunk per line.
type lines struct {
	server     *server
	connection net.Conn
	block      []byte
	scratch    []byte
	err        error
}

func (l *lines) event(of event) {
	l.scratch = append(append(append(l.scratch[:0], `{"type":"`...), of.typ...), `","object":`...)
	l.scratch = l.server.cluster.things[of.index].write(l.scratch, of.state)
	l.chunk(append(l.scratch, "}\n"...))
}

func (l *lines) bookmark(version int, endsInitial bool) {
	annotations := ""
	if endsInitial {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	l.text(fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"spec":{"containers":null},"status":{}}}`+"\n",
		version, annotations))
}

func (l *lines) text(line string) { l.chunk([]byte(line)) }

func (l *lines) chunk(bytes []byte) {
	l.block = strconv.AppendInt(l.block, int64(len(bytes)), 16)
	l.block = append(append(append(l.block, "\r\n"...), bytes...), "\r\n"...)
	if len(l.block) > 64<<10 {
		l.flush()
	}
}

func (l *lines) flush() {
	if l.err == nil {
		_, l.err = l.connection.Write(l.block)
	}
	l.block = l.block[:0]
}

func (l *lines) end() {
	l.block = append(l.block, "0\r\n\r\n"...)
	l.flush()
}
