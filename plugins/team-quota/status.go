package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// withinBudget is the type of the condition.
const withinBudget = "WithinBudget"

// budget is the part of a TeamBudget that the plugin reads.
type budget struct {
	Team       string `pointer:"/spec/team"`
	CPU        string `pointer:"/spec/cpu"`
	Memory     string `pointer:"/spec/memory"`
	Generation int64  `pointer:"/metadata/generation"`
	Status     status `pointer:"/status"`
}

type status struct {
	ObservedGeneration int64       `json:"observedGeneration,omitempty"`
	Pods               int32       `json:"pods"`
	CPU                string      `json:"cpu,omitempty"`
	Memory             string      `json:"memory,omitempty"`
	Conditions         []condition `json:"conditions,omitempty"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
}

// of returns the condition of the plugin's type; the zero value if there is none.
func (s status) condition() condition {
	for _, condition := range s.Conditions {
		if condition.Type == withinBudget {
			return condition
		}
	}
	return condition{}
}

// statusOf returns the status of a budget for what is requested. The time of the condition changes only
// with its status.
func statusOf(b budget, pods int32, requested amounts, now time.Time) status {
	next := condition{Type: withinBudget, ObservedGeneration: b.Generation}
	allowed, err := parse(b.limits())
	over := excess(b, allowed, requested)
	switch {
	case err != nil:
		next.Status, next.Reason, next.Message = "Unknown", "InvalidBudget", "spec: "+err.Error()
	case len(over) > 0:
		next.Status, next.Reason, next.Message = "False", "OverBudget", strings.Join(over, ", ")
	default:
		next.Status, next.Reason, next.Message = "True", "WithinBudget", "the Pods request no more than the budget"
	}
	before := b.Status.condition()
	next.LastTransitionTime = before.LastTransitionTime
	if before.Status != next.Status {
		next.LastTransitionTime = now.UTC().Format(time.RFC3339)
	}
	return status{
		ObservedGeneration: b.Generation, Pods: pods, CPU: requested.cpu.String(), Memory: requested.memory.String(),
		Conditions: []condition{next},
	}
}

// limits returns the limits that the budget has.
func (b budget) limits() quantities {
	limits := quantities{}
	if b.CPU != "" {
		limits["cpu"] = b.CPU
	}
	if b.Memory != "" {
		limits["memory"] = b.Memory
	}
	return limits
}

// excess says which amounts are above the budget.
func excess(b budget, allowed, requested amounts) (over []string) {
	for _, amount := range []struct {
		name, limit        string
		allowed, requested resource.Quantity
	}{
		{"cpu", b.CPU, allowed.cpu, requested.cpu}, {"memory", b.Memory, allowed.memory, requested.memory},
	} {
		if amount.limit != "" && amount.requested.Cmp(amount.allowed) > 0 {
			over = append(over, fmt.Sprintf("%s: %v of %s", amount.name, &amount.requested, amount.limit))
		}
	}
	return over
}
