// Package corpus makes the Pods of the benchmark and their events: the same ones for the same seed.
//
// They are what a cluster of a few hundred nodes has: a few hundred templates whose Pods share almost
// everything, and in each Pod what is its own: name, uid, IPs, node, times, 64-hex container ids and (harsher
// than reality) image ids.
package corpus

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Templates is the number of templates. Each has its own namespace, names, images, settings.
const Templates = 250

// firstVersion is the resourceVersion of the list; all of a list's objects are older.
const firstVersion = 10_000_000

// Seed is the seed of the benchmark.
const Seed = 1

// Pods makes n Pods, in the order of namespace and name, as the API server lists them.
func Pods(seed uint64, n int) []*corev1.Pod {
	templates := make([]*template, Templates)
	Parallel(Templates, func(i int) { templates[i] = newTemplate(seed, i) })
	// Large and small deployments: the largest has about a fiftieth of all Pods.
	var weights []int
	for i := range templates {
		for range 1 + 40/(1+i%40) {
			weights = append(weights, i)
		}
	}
	pods := make([]*corev1.Pod, n)
	templateOf := make([]*template, n)
	Parallel(n, func(i int) {
		t := weights[source(seed, 3, uint64(i)).IntN(len(weights))]
		if i < Templates {
			t = i
		}
		templateOf[i] = templates[t]
		pods[i] = templateOf[i].pod(seed, i)
	})
	// In a large corpus two Pods may get one name.
	named := make(map[string]bool, n)
	for i, pod := range pods {
		for again := 1; named[pods[i].Namespace+"/"+pods[i].Name]; again++ {
			pods[i] = templateOf[i].pod(seed, again<<32+i)
		}
		named[pod.Namespace+"/"+pods[i].Name] = true
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// workers is the number of goroutines of Parallel.
const workers = 4

// Parallel calls a function for each of 0..n, on all cores.
func Parallel(n int, do func(i int)) {
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	group.Wait()
}
