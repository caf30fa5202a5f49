package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// pod is the part of a Pod that counts.
type pod struct {
	Phase          string      `pointer:"/status/phase"`
	Containers     []container `pointer:"/spec/containers"`
	InitContainers []container `pointer:"/spec/initContainers"`
	Overhead       quantities  `pointer:"/spec/overhead"`
}

type container struct {
	RestartPolicy string `json:"restartPolicy"`
	Resources     struct {
		Requests quantities `json:"requests"`
	} `json:"resources"`
}

// quantities are quantities by the name of a resource, as text.
type quantities map[string]string

// amounts are the two resources that a budget limits.
type amounts struct {
	cpu, memory resource.Quantity
}

// hasEnded returns whether the Pod uses nothing any more.
func (p pod) hasEnded() bool {
	return p.Phase == "Succeeded" || p.Phase == "Failed"
}

// requests returns what the Pod requests, as the scheduler counts it: the containers and the sidecars, or
// the largest init container together with the sidecars before it, and the overhead.
func (p pod) requests() (amounts, error) {
	var running, sidecars, starting amounts
	for _, init := range p.InitContainers {
		requested, err := parse(init.Resources.Requests)
		if err != nil {
			return amounts{}, err
		}
		if init.RestartPolicy == "Always" {
			sidecars.add(requested)
			requested = amounts{}
		}
		requested.add(sidecars)
		starting.raise(requested)
	}
	running.add(sidecars)
	for _, container := range p.Containers {
		requested, err := parse(container.Resources.Requests)
		if err != nil {
			return amounts{}, err
		}
		running.add(requested)
	}
	running.raise(starting)
	overhead, err := parse(p.Overhead)
	running.add(overhead)
	return running, err
}

func (a *amounts) add(other amounts) {
	a.cpu.Add(other.cpu)
	a.memory.Add(other.memory)
}

// raise raises each amount to the other, if that is larger.
func (a *amounts) raise(other amounts) {
	if other.cpu.Cmp(a.cpu) > 0 {
		a.cpu = other.cpu.DeepCopy()
	}
	if other.memory.Cmp(a.memory) > 0 {
		a.memory = other.memory.DeepCopy()
	}
}

func parse(texts quantities) (parsed amounts, err error) {
	for name, into := range map[string]*resource.Quantity{"cpu": &parsed.cpu, "memory": &parsed.memory} {
		text, ok := texts[name]
		if !ok {
			continue
		}
		if *into, err = resource.ParseQuantity(text); err != nil {
			return amounts{}, fmt.Errorf("%s %q: %w", name, text, err)
		}
	}
	return parsed, nil
}
