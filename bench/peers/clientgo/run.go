// Package clientgo measures the shared informers of client-go with their default configuration.
package clientgo

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Run is one run of one informer: sync, rest, events, rest. It prints its readings as one line of JSON.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("client-go", flag.ContinueOnError)
	server := flags.String("server", "", "the synthetic API server")
	kubeconfig := flags.String("kubeconfig", "", "a real API server in its place; only syncs")
	objects := flags.Uint64("objects", 0, "how many Pods the real one has")
	kind := flags.String("as", "typed-json", "typed-json, typed-protobuf, dynamic or metadata")
	handlers := flags.Int("handlers", 1, "how many there are")
	events := flags.Int("events", 0, "how many, at most; all by default")
	rate := flags.Int("rate", 0, "how many a second, each sent alone; as fast as they are read by default")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config := &rest.Config{Host: *server}
	if *kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
			return err
		}
	}
	config.QPS = -1
	informer, form, err := newInformer(*kind, config)
	if err != nil {
		return err
	}
	plan := plan{Objects: *objects}
	if *kubeconfig == "" {
		if plan, err = prepare(*server, form, *events); err != nil {
			return err
		}
	}
	var synced, ended sync.WaitGroup
	for range *handlers {
		synced.Add(1)
		ended.Add(1)
		if _, err := informer.AddEventHandler(handler(plan, &synced, &ended)); err != nil {
			return err
		}
	}

	var r record
	settle()
	if r.ResidentBefore, err = resident(); err != nil {
		return err
	}
	if err := resetPeak(); err != nil {
		return err
	}
	before := cpu()
	go informer.Run(make(chan struct{}))
	synced.Wait()
	settle()
	r.Objects, r.SyncCPU = plan.Objects, (cpu() - before).Seconds()
	if r.ResidentPeak, err = peakResident(); err != nil {
		return err
	}
	if r.ResidentSynced, err = resident(); err != nil {
		return err
	}
	r.ResidentAfter = r.ResidentSynced
	if *kubeconfig != "" {
		return r.print()
	}
	settle()

	before, begun := cpu(), time.Now()
	if err := post(*server, fmt.Sprint("start?rate=", *rate)); err != nil {
		return err
	}
	ended.Wait()
	heard := cpu()
	r.Events, r.EventsSeconds = plan.Events, time.Since(begun).Seconds()
	settle()
	r.EventsCPU, r.CatchingUpCPU = (cpu() - before).Seconds(), (cpu() - heard).Seconds()
	if r.ResidentAfter, err = resident(); err != nil {
		return err
	}
	return r.print()
}

// newInformer returns an informer, and the form in which the server must prepare the objects.
func newInformer(kind string, config *rest.Config) (cache.SharedIndexInformer, string, error) {
	switch kind {
	case "typed-json", "typed-protobuf":
		form := "json"
		if kind == "typed-protobuf" {
			form, config.ContentType = "protobuf", "application/vnd.kubernetes.protobuf"
		} else {
			config.ContentType = "application/json"
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, "", err
		}
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), form, nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, "", err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(pods).Informer(), "json", nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, "", err
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(pods).Informer(), "metadata-protobuf", nil
	default:
		return nil, "", fmt.Errorf("there is no client %q", kind)
	}
}

// handler only reads the resourceVersion of each notification.
func handler(plan plan, synced, ended *sync.WaitGroup) cache.ResourceEventHandler {
	var objects atomic.Uint64
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			if objects.Add(1) == plan.Objects {
				synced.Done()
			}
		},
		UpdateFunc: func(_, object any) {
			if object, ok := object.(metav1.Object); ok && object.GetResourceVersion() == plan.LastResourceVersion {
				ended.Done()
			}
		},
	}
}
