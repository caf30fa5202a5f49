// Package recovery measures how informers come through an API server that fails for a while: the time until
// they have the whole state again, the changes that they received meanwhile, and the number of requests.
// client-go's informers run in this process; those of Oarlock get the plan over HTTP and run in their own
// process at the same time. Each informer has its own server, and all servers fail in the same way.
package recovery

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// run is one measurement.
type run struct {
	cluster *cluster
	// servers by the kind of informer that asks them.
	servers map[string][]*server
	calm    chan struct{}
	done    chan struct{}
}

// Run measures and ends when both sides have been asked for. It prints where the other side finds its plan,
// and then what came out.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("recovery", flag.ContinueOnError)
	scenario := flags.String("scenario", "flaky", "what goes wrong: "+strings.Join(scenarioNames(), ", "))
	informers := flags.Int("informers", 8, "how many informers there are of each kind")
	seconds := flags.Int("seconds", 120, "for how long it goes wrong")
	objects := flags.Int("objects", 200, "how many objects there are")
	rate := flags.Int("rate", 20, "how many of them change in a second")
	seed := flags.Uint64("seed", 1, "what goes wrong when")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	fails, ok := scenarios[*scenario]
	if !ok {
		return fmt.Errorf("no scenario %q", *scenario)
	}
	r := &run{
		cluster: newCluster(*seed, *objects), servers: map[string][]*server{},
		calm: make(chan struct{}), done: make(chan struct{}),
	}
	for _, kind := range []string{"ours", "client-go"} {
		for i := range *informers {
			s, err := newServer(r.cluster, fails, *seed, uint64(i))
			if err != nil {
				return err
			}
			r.servers[kind] = append(r.servers[kind], s)
		}
	}
	control, err := r.control()
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]string{"event": "ready", "url": control})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, string(line))

	theirs := make(chan []outcome, 1)
	go func() { theirs <- follow(r.cluster, urls(r.servers["client-go"]), r.calm) }()
	// The servers work at first: the run measures the recovery, not the start.
	r.cluster.wait(func() bool { return r.cluster.ready == 2**informers })
	r.all(func(s *server) { s.fail() })
	r.cluster.write(*rate, time.Duration(*seconds)*time.Second)
	r.all(func(s *server) { s.heal() })
	close(r.calm)
	outcomes := <-theirs
	<-r.done
	report := map[string]any{
		"scenario": *scenario, "seconds": *seconds, "informers": *informers, "written": r.cluster.version - *objects, "seed": *seed,
		"client-go": summary(outcomes, r.servers["client-go"]), "ours": summary(r.cluster.ours, r.servers["ours"]),
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func (r *run) all(do func(*server)) {
	for _, servers := range r.servers {
		for _, s := range servers {
			do(s)
		}
	}
}

// control serves what the other side needs: where to ask, how things stand, and a place for what came out.
func (r *run) control() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /control/plan", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(urls(r.servers["ours"]))
	})
	mux.HandleFunc("GET /control/state", func(w http.ResponseWriter, _ *http.Request) {
		state := map[string]any{"sum": r.cluster.sum(), "calm_for": nil}
		select {
		case <-r.calm:
			state["calm_for"] = r.cluster.calmFor().Seconds()
		default:
		}
		json.NewEncoder(w).Encode(state)
	})
	mux.HandleFunc("POST /control/ready", func(http.ResponseWriter, *http.Request) { r.cluster.isReady() })
	var once sync.Once
	mux.HandleFunc("POST /control/outcome", func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		outcomes, err := outcomes(strings.Split(query.Get("seconds"), ","), strings.Split(query.Get("heard"), ","))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.cluster.ours = outcomes
		once.Do(func() { close(r.done) })
	})
	go http.Serve(listener, mux)
	return "http://" + listener.Addr().String(), nil
}

// outcomes reads what came out on the other side.
func outcomes(seconds, heard []string) (all []outcome, err error) {
	for i := range seconds {
		var each outcome
		if each.Seconds, err = strconv.ParseFloat(seconds[i], 64); err != nil {
			return nil, err
		}
		if each.Heard, err = strconv.Atoi(heard[i]); err != nil {
			return nil, err
		}
		all = append(all, each)
	}
	return all, nil
}

func urls(servers []*server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, "http://"+s.address)
	}
	return all
}
