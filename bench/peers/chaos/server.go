// Package chaos is an API server with many faults: connections break in the middle of a line, fall silent, or
// end; versions expire; requests are refused; lines are garbage; the server restarts and has forgotten the
// past.
//
// Its data is correct all the same: an informer that handles the faults ends with the state of a fresh list.
package chaos

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type server struct {
	cluster *cluster
	mutex   sync.Mutex
	// watches are the open connections, which a restart breaks.
	watches map[net.Conn]bool
	// snapshots are the lists of which a client has read the first page.
	snapshots map[string]snapshot
	n         int
	faults    map[string]int
}

type snapshot struct {
	states  []event
	version int
}

// Run serves until the process ends. It prints its address to stdout.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	objects := flags.Int("pods", 2_000, "how many Pods there are at most")
	events := flags.Int("events", 10_000_000, "how much happens to them")
	seed := flags.Uint64("seed", 1, "what, and what goes wrong")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	cluster, err := newCluster(*seed, *objects, *events)
	if err != nil {
		return err
	}
	s := &server{cluster: cluster, watches: map[net.Conn]bool{}, snapshots: map[string]snapshot{}, faults: map[string]int{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]string{"event": "ready", "url": "http://" + listener.Addr().String()})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, string(line))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", s.pods)
	mux.HandleFunc("GET /control/state", s.state)
	mux.HandleFunc("GET /control/fresh", func(w http.ResponseWriter, _ *http.Request) {
		states, version := cluster.snapshot()
		s.page(w, states, version, "")
	})
	go s.restartNowAndThen()
	return http.Serve(listener, mux)
}

func (s *server) state(w http.ResponseWriter, _ *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	json.NewEncoder(w).Encode(map[string]any{"remaining": s.cluster.remaining(), "faults": s.faults})
}

// note counts a fault.
func (s *server) note(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.faults[what]++
}

func (s *server) restartNowAndThen() {
	for s.cluster.remaining() > 0 {
		time.Sleep(time.Duration(5+s.cluster.dice(20)) * time.Second)
		if s.cluster.remaining() == 0 {
			return
		}
		s.note("restart")
		s.cluster.forget()
		s.mutex.Lock()
		for connection := range s.watches {
			connection.Close()
		}
		s.snapshots = map[string]snapshot{}
		s.mutex.Unlock()
	}
}

func (s *server) pods(w http.ResponseWriter, request *http.Request) {
	isOver := s.cluster.remaining() == 0
	if !isOver {
		s.cluster.meanwhile()
		if s.refuse(w) {
			return
		}
	}
	query := request.URL.Query()
	if query.Get("watch") != "" {
		s.watch(w, query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true")
		return
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	token := query.Get("continue")
	list, ok := s.find(token)
	if !ok {
		s.status(w, http.StatusGone, "Expired", "the continue token is too old")
		return
	}
	next := ""
	rest := list.states
	if limit > 0 && limit < len(rest) {
		next = s.keep(snapshot{rest[limit:], list.version})
		rest = rest[:limit]
	}
	s.page(w, rest, list.version, next)
}

// refuse answers some requests with an error.
func (s *server) refuse(w http.ResponseWriter) bool {
	if !s.cluster.oneIn(5) {
		return false
	}
	switch s.cluster.dice(5) {
	case 0:
		s.note("429")
		w.Header().Set("Retry-After", "0")
		s.status(w, http.StatusTooManyRequests, "TooManyRequests", "slow down")
	case 1:
		s.note("500")
		s.status(w, http.StatusInternalServerError, "InternalError", "etcdserver: leader changed")
	case 2:
		s.note("503")
		s.status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "starting")
	case 3:
		s.note("410")
		s.status(w, http.StatusGone, "Expired", "too old resource version")
	default:
		s.note("no answer")
		if hijacker, ok := w.(http.Hijacker); ok {
			if connection, _, err := hijacker.Hijack(); err == nil {
				connection.Close()
			}
		}
	}
	return true
}

func (s *server) status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprint(w, statusText(code, reason, message))
}

func statusText(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`,
		message, reason, code)
}

// find returns the rest of the list that a token stands for; a new one for none.
func (s *server) find(token string) (snapshot, bool) {
	if token == "" {
		states, version := s.cluster.snapshot()
		return snapshot{states, version}, true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list, ok := s.snapshots[token]
	return list, ok
}

func (s *server) keep(list snapshot) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.n++
	delete(s.snapshots, strconv.Itoa(s.n-16))
	token := strconv.Itoa(s.n)
	s.snapshots[token] = list
	return token
}

func (s *server) page(w http.ResponseWriter, states []event, version int, next string) {
	page := fmt.Appendf(nil, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"`, version)
	if next != "" {
		page = fmt.Appendf(page, `,"continue":%q`, next)
	}
	page = append(page, `},"items":[`...)
	for i, each := range states {
		if i > 0 {
			page = append(page, ',')
		}
		page = s.cluster.things[each.index].write(page, each.state)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(page, "]}\n"...))
}
