package recovery

import (
	"slices"
	"time"
)

// fails says what goes wrong. Each figure is a share of requests, but for watchFor.
type fails struct {
	// down: nothing listens.
	down bool
	// reset: the connection is reset in place of an answer.
	reset float64
	// statuses: answers of this code.
	throttled, unavailable, internal, expired float64
	// slow: the answer comes up to two seconds late.
	slow float64
	// watchFor is how long a watch lasts on average; 0 for as long as the client likes.
	watchFor time.Duration
	// halfway: of the watches that begin with what there is, the connection is reset in the middle of that.
	halfway float64
}

var scenarios = map[string]fails{
	// A proxy that cuts, resets and delays, before a server that has too much to do.
	"flaky": {
		reset: 0.2, throttled: 0.1, unavailable: 0.1, internal: 0.03, expired: 0.03, slow: 0.2,
		watchFor: 3 * time.Second, halfway: 0.2,
	},
	"cut":         {reset: 0.3, watchFor: 2 * time.Second, halfway: 0.3},
	"reset":       {reset: 1, watchFor: time.Millisecond},
	"down":        {down: true, watchFor: time.Millisecond},
	"throttled":   {throttled: 1, watchFor: time.Millisecond},
	"unavailable": {unavailable: 1, watchFor: time.Millisecond},
	"internal":    {internal: 1, watchFor: time.Millisecond},
}

func scenarioNames() []string {
	var names []string
	for name := range scenarios {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
