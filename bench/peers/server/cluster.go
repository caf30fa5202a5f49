package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// cluster answers what a host of plugins asks beside lists and watches: discovery, access reviews, accounts
// and writes. Everything is allowed, every account exists, and nothing that is written is stored.
type cluster struct {
	// writeDelay is the duration of a write.
	writeDelay time.Duration
	// version is the last resourceVersion of a write.
	version atomic.Int64
	// writes is the number of writes so far.
	writes atomic.Int64
}

func (c *cluster) routes(mux *http.ServeMux) {
	for path, answer := range map[string]any{
		"GET /version":    map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
		"GET /api":        map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"GET /apis":       map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"GET /api/v1":     resourceList(),
		"GET /api/v1/{$}": resourceList(),
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, answer) })
	}
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/{review}", c.review)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/serviceaccounts/{name}", c.account)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/{resource}", c.write)
	mux.HandleFunc("PATCH /api/v1/namespaces/{namespace}/{resource}/{name}", c.write)
	mux.HandleFunc("GET /control/writes", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]int64{"writes": c.writes.Load()})
	})
}

func resourceList() any {
	verbs := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	resource := func(name, kind string) map[string]any {
		return map[string]any{"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs}
	}
	return map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
		resource("pods", "Pod"), resource("configmaps", "ConfigMap"), resource("events", "Event"),
		resource("serviceaccounts", "ServiceAccount"),
	}}
}

// review allows what it is asked for.
func (c *cluster) review(w http.ResponseWriter, request *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review["status"] = map[string]any{"allowed": true}
	answerJSON(w, http.StatusCreated, review)
}

func (c *cluster) account(w http.ResponseWriter, request *http.Request) {
	namespace, name := request.PathValue("namespace"), request.PathValue("name")
	answerJSON(w, http.StatusOK, map[string]any{"kind": "ServiceAccount", "apiVersion": "v1", "metadata": map[string]any{
		"namespace": namespace, "name": name, "uid": "account-" + namespace + "-" + name, "resourceVersion": "1",
	}})
}

// write answers with the metadata that a stored object would have.
func (c *cluster) write(w http.ResponseWriter, request *http.Request) {
	io.Copy(io.Discard, request.Body)
	time.Sleep(c.writeDelay)
	c.writes.Add(1)
	name := request.PathValue("name")
	if name == "" {
		name = fmt.Sprintf("made-%d", c.version.Load())
	}
	answerJSON(w, http.StatusOK, map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{
		"namespace": request.PathValue("namespace"), "name": name, "uid": "uid-" + name,
		"resourceVersion": strconv.FormatInt(1<<40+c.version.Add(1), 10),
	}})
}

func answerJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}
