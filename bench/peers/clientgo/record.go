package clientgo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
)

// record has the readings of a run; see bench/measure.
type record struct {
	Objects        uint64  `json:"objects"`
	Events         uint64  `json:"events"`
	ResidentBefore uint64  `json:"resident_before"`
	ResidentPeak   uint64  `json:"resident_peak"`
	ResidentSynced uint64  `json:"resident_synced"`
	ResidentAfter  uint64  `json:"resident_after"`
	SyncCPU        float64 `json:"sync_cpu_seconds"`
	EventsCPU      float64 `json:"events_cpu_seconds"`
	CatchingUpCPU  float64 `json:"catching_up_cpu_seconds"`
	EventsSeconds  float64 `json:"events_seconds"`
}

// plan is the planned run of the server.
type plan struct {
	Objects             uint64 `json:"objects"`
	Events              uint64 `json:"events"`
	LastResourceVersion string `json:"last_resource_version"`
}

// prepare makes the server prepare a run; a number of events above 0 limits them.
func prepare(server, form string, events int) (plan, error) {
	var p plan
	if err := post(server, "reset"); err != nil {
		return p, err
	}
	query := url.Values{"form": {form}}
	if events > 0 {
		query.Set("events", strconv.Itoa(events))
	}
	answer, err := http.Get(server + "/control/pods/plan?" + query.Encode())
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	return p, json.NewDecoder(answer.Body).Decode(&p)
}

func post(server, what string) error {
	answer, err := http.Post(server+"/control/"+what, "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", what, answer.Status)
	}
	return nil
}

func (r record) print() error {
	return json.NewEncoder(os.Stdout).Encode(r)
}
