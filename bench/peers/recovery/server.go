package recovery

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is an API server for one informer.
type server struct {
	cluster *cluster
	fails   fails
	address string
	mutex   sync.Mutex
	random  *rand.Rand
	// failing: things go wrong at the moment.
	failing     bool
	listener    net.Listener
	connections map[net.Conn]bool
	// counts of requests while things went wrong and afterwards, by kind.
	during, afterwards map[string]int
}

func newServer(c *cluster, fails fails, seed, stream uint64) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{
		cluster: c, fails: fails, address: listener.Addr().String(), random: rand.New(rand.NewPCG(seed, stream)), listener: listener,
		connections: map[net.Conn]bool{}, during: map[string]int{}, afterwards: map[string]int{},
	}
	go s.serve(listener)
	return s, nil
}

func (s *server) serve(listener net.Listener) {
	server := &http.Server{Handler: s, ConnState: func(connection net.Conn, state http.ConnState) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		switch state {
		case http.StateNew:
			s.connections[connection] = true
		case http.StateClosed:
			delete(s.connections, connection)
		}
	}}
	server.Serve(listener)
}

// fail lets things go wrong from now on; what is open ends.
func (s *server) fail() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.failing = true
	if s.fails.down {
		s.listener.Close()
	}
	for connection := range s.connections {
		reset(connection)
	}
}

// heal ends that.
func (s *server) heal() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.failing = false
	if s.fails.down {
		listener, err := net.Listen("tcp", s.address)
		if err != nil {
			panic(err)
		}
		s.listener = listener
		go s.serve(listener)
	}
}

// happens decides whether something goes wrong that does so in this share of all cases.
func (s *server) happens(share float64) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.failing && s.random.Float64() < share
}

func (s *server) count(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.failing {
		s.during[what]++
	} else if !s.cluster.calmAt.IsZero() {
		s.afterwards[what]++
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	isWatch, isStream := query.Get("watch") != "", query.Get("sendInitialEvents") == "true"
	switch {
	case isStream:
		s.count("streams")
	case isWatch:
		s.count("watches")
	default:
		s.count("lists")
	}
	f := s.fails
	if s.happens(f.slow) {
		s.pause(2 * time.Second)
	}
	switch {
	case s.happens(f.reset):
		s.cut(w)
	case s.happens(f.throttled):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "TooManyRequests")
	case s.happens(f.unavailable):
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
	case s.happens(f.internal):
		refuse(w, http.StatusInternalServerError, "InternalError")
	case s.happens(f.expired):
		refuse(w, http.StatusGone, "Expired")
	case isWatch:
		from, _ := strconv.Atoi(query.Get("resourceVersion"))
		s.watch(w, from, isStream, request)
	default:
		all, version := s.cluster.snapshot()
		items := make([]string, 0, len(all))
		for _, each := range all {
			items = append(items, each.json())
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(items, ","))
	}
}

// watch streams until its time is over.
func (s *server) watch(w http.ResponseWriter, from int, isStream bool, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	flusher := w.(http.Flusher)
	if isStream {
		all, version := s.cluster.snapshot()
		isCut := s.happens(s.fails.halfway)
		for i, each := range all {
			if isCut && i == len(all)/2 {
				flusher.Flush()
				s.cut(w)
				return
			}
			send(w, each)
		}
		bookmark(w, version, true)
		from = version
	}
	flusher.Flush()
	ends := time.Duration(1 << 62)
	s.mutex.Lock()
	if s.failing && s.fails.watchFor > 0 {
		ends = time.Duration(s.random.ExpFloat64() * float64(s.fails.watchFor))
	}
	how := s.random.IntN(4)
	s.mutex.Unlock()
	begun, ticker := time.Now(), time.NewTicker(20*time.Millisecond)
	defer ticker.Stop()
	for lastSign := time.Now(); ; {
		select {
		case <-request.Context().Done():
			return
		case <-ticker.C:
		}
		if time.Since(begun) > ends {
			s.end(w, how)
			return
		}
		events := s.cluster.after(from)
		for _, each := range events {
			send(w, each)
			from = each.version
		}
		if len(events) == 0 && time.Since(lastSign) > time.Second {
			bookmark(w, from, false)
			lastSign = time.Now()
		}
		flusher.Flush()
	}
}

// end ends a watch in one of the ways in which watches end.
func (s *server) end(w http.ResponseWriter, how int) {
	switch how {
	case 0:
	case 1:
		fmt.Fprint(w, `{"type":"MODIFIED","object":{"kind":"ConfigMap"`)
		w.(http.Flusher).Flush()
		s.cut(w)
	case 2:
		fmt.Fprintln(w, `{"type":"ERROR","object":`+statusText(http.StatusGone, "Expired")+`}`)
	default:
		s.cut(w)
	}
}

func (s *server) pause(longest time.Duration) {
	s.mutex.Lock()
	pause := time.Duration(s.random.Float64() * float64(longest))
	s.mutex.Unlock()
	time.Sleep(pause)
}

// cut resets the connection.
func (s *server) cut(w http.ResponseWriter) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		reset(connection)
	}
}

func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	connection.Close()
}

func send(w io.Writer, e event) { fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.typ, e.json()) }

func bookmark(w io.Writer, version int, endsInitial bool) {
	annotations := ""
	if endsInitial {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s}}}`+"\n", version, annotations)
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprint(w, statusText(code, reason))
}

func statusText(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"on purpose","reason":%q,"code":%d}`, reason, code)
}
