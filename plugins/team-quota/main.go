// A plugin that compares what the Pods of a team request with the team's budget.
package main

import (
	"errors"
	"log/slog"
	"reflect"

	oarlock "oarlock.dev/sdk"
)

var budgets = oarlock.GVR("oarlock.dev", "v1alpha1", "teambudgets")

// byTeam is the index of Pods by the label of their team.
const byTeam = "pods-by-team"

func setup(p *oarlock.Plugin) error {
	p.Name, p.Version, p.Stateless = "team-quota", "0.1.0", true
	config := struct {
		Label string `json:"label"`
	}{"team"}
	if err := oarlock.Config(&config); err != nil {
		return err
	}
	// Its own writes of the status change no spec, so they add no key.
	p.Enqueue(oarlock.Subscription{Target: budgets, Fields: []string{"/spec"}}, oarlock.Itself())
	p.Reconciler = &reconciler{
		budgets: oarlock.NewLister[budget](p, oarlock.Read{Target: budgets}),
		// A change of a Pod adds the keys of the budgets that read the Pod's team.
		pods: oarlock.NewLister[pod](p, oarlock.Read{
			Target: oarlock.GVR("", "v1", "pods"), Wakes: true,
			Indices: oarlock.Indices{byTeam: oarlock.ByLabel(config.Label)},
		}),
		statuses: oarlock.NewClient[budget](p, budgets).Status("patch"),
	}
	return nil
}

type reconciler struct {
	budgets  *oarlock.Lister[budget]
	pods     *oarlock.Lister[pod]
	statuses *oarlock.Client[budget]
}

// Reconcile writes the status of a TeamBudget, if it differs.
func (r *reconciler) Reconcile(key oarlock.WorkKey) (oarlock.Result, error) {
	found, err := r.budgets.Get(key.ObjectKey)
	if err != nil {
		return oarlock.Result{}, oarlock.IgnoreNotFound(err)
	}
	budget, err := found.Value()
	if err != nil {
		return oarlock.Result{}, oarlock.Terminal(err)
	}
	pods, requested, err := r.sum(budget.Team)
	if err != nil {
		return oarlock.Result{}, err
	}
	next := statusOf(budget, pods, requested, oarlock.Now())
	if reflect.DeepEqual(next, budget.Status) {
		return oarlock.Result{}, nil
	}
	patch := oarlock.MergePatch(map[string]any{"status": next})
	_, err = r.statuses.Patch(key.ObjectKey, patch, found.Unchanged())
	if errors.Is(err, oarlock.ErrNotFound) {
		return oarlock.Result{}, nil
	}
	if err != nil {
		return oarlock.Result{}, err // after ErrConflict, the cache will have the newer budget
	}
	report(found.ObjectRef, budget, next)
	return oarlock.Result{}, nil
}

// sum returns how many Pods of a team have not ended, and what they request.
func (r *reconciler) sum(team string) (pods int32, requested amounts, err error) {
	for found, err := range r.pods.ByIndex(byTeam, team) {
		if err != nil {
			return 0, amounts{}, err
		}
		pod, err := found.Value()
		if err != nil {
			return 0, amounts{}, oarlock.Terminal(err)
		}
		if pod.hasEnded() {
			continue
		}
		requests, err := pod.requests()
		if err != nil {
			return 0, amounts{}, oarlock.Terminal(err)
		}
		pods++
		requested.add(requests)
	}
	return pods, requested, nil
}

// report logs what has changed, and records an Event when the team went above its budget.
func report(regarding oarlock.ObjectRef, before budget, next status) {
	condition := next.condition()
	slog.Info("budget compared", "budget", regarding.Name, "team", before.Team,
		"pods", next.Pods, "cpu", next.CPU, "memory", next.Memory, "within-budget", condition.Status)
	if condition.Status != "False" || before.Status.condition().Status == "False" {
		return
	}
	recorder := oarlock.Recorder{Target: budgets, Kind: "TeamBudget"}
	if err := recorder.Eventf(regarding, oarlock.Warning, condition.Reason, "team %s: %s", before.Team, condition.Message); err != nil {
		slog.Warn("no Event recorded", "error", err)
	}
}

func init() { oarlock.Register(setup) }

func main() {}
