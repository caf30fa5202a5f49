package recovery

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// outcome has the readings of one informer.
type outcome struct {
	// Seconds from the end of the failures to the complete state.
	Seconds float64
	// Heard is the number of changes that the handler received during the failures.
	Heard int
}

// follower is a handler with the version of each object and a checksum of all versions.
type follower struct {
	mutex      sync.Mutex
	versions   map[string]int
	sum, heard int
}

// follow runs client-go's informers, as its users make them, until each has the complete state.
func follow(c *cluster, urls []string, calm chan struct{}) []outcome {
	// What it has to say of the failures is no news here.
	klog.SetLogger(logr.Discard())
	outcomes := make([]outcome, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		all.Add(1)
		go func() {
			defer all.Done()
			outcomes[i] = followOne(c, url, calm)
		}()
	}
	all.Wait()
	return outcomes
}

func followOne(c *cluster, url string, calm chan struct{}) outcome {
	config := &rest.Config{Host: url, QPS: -1}
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
	f := &follower{versions: map[string]int{}}
	if _, err := informer.AddEventHandler(f.handler()); err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	cache.WaitForCacheSync(stop, informer.HasSynced)
	for f.has() != c.sum() {
		time.Sleep(10 * time.Millisecond)
	}
	c.isReady()
	before := f.count()
	<-calm
	result := outcome{Heard: f.count() - before}
	for f.has() != c.sum() {
		time.Sleep(10 * time.Millisecond)
	}
	result.Seconds = c.calmFor().Seconds()
	return result
}

func (f *follower) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.set(object, version(object)) },
		UpdateFunc: func(_, object any) { f.set(object, version(object)) },
		DeleteFunc: func(object any) { f.set(object, 0) },
	}
}

// set notes the version of an object; 0 for one that is gone.
func (f *follower) set(object any, version int) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		panic(err)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if before := f.versions[key]; before != version {
		f.sum += version - before
		f.versions[key] = version
		f.heard++
	}
}

func (f *follower) has() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.sum
}

func (f *follower) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.heard
}

func version(object any) int {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(accessor.GetResourceVersion())
	if err != nil {
		return 0
	}
	return number
}

// summary is what came out of one kind.
func summary(outcomes []outcome, servers []*server) map[string]any {
	var seconds []float64
	heard := 0
	for _, each := range outcomes {
		seconds = append(seconds, each.Seconds)
		heard += each.Heard
	}
	slices.Sort(seconds)
	during, afterwards := map[string]int{}, map[string]int{}
	for _, s := range servers {
		s.mutex.Lock()
		for what, n := range s.during {
			during[what] += n
		}
		for what, n := range s.afterwards {
			afterwards[what] += n
		}
		s.mutex.Unlock()
	}
	return map[string]any{
		"seconds": seconds, "median": seconds[len(seconds)/2], "longest": seconds[len(seconds)-1],
		"heard": heard / len(outcomes), "requests": during, "requests_afterwards": afterwards,
	}
}
