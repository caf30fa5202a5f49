package oarlockctrl

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	oarlock "oarlock.dev/sdk"
)

// hosted is a manager whose cache and client are those of the host.
type hosted struct {
	plugin      *oarlock.Plugin
	scheme      *runtime.Scheme
	mapper      *mapper
	context     context.Context
	controllers map[string]*controller
	informers   *informers
	client      *client
}

var _ manager.Manager = &hosted{}

// Add adds a controller. Other runnables would be goroutines that outlive a call.
func (m *hosted) Add(runnable manager.Runnable) error {
	c, err := newController(m, runnable)
	if err != nil {
		return err
	}
	m.controllers[c.name] = c
	return nil
}

// Elected returns a closed channel: the host runs one instance.
func (m *hosted) Elected() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

// Start returns an error: the host starts the plugin.
func (m *hosted) Start(context.Context) error {
	return errors.New("the host starts the manager: remove mgr.Start")
}

// AddMetricsServerExtraHandler returns an error: the host has the metrics page.
func (m *hosted) AddMetricsServerExtraHandler(path string, _ http.Handler) error {
	return fmt.Errorf("a plugin serves no HTTP, so it cannot have %s", path)
}

// AddHealthzCheck does nothing: the host knows whether a plugin works.
func (m *hosted) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck does nothing: the host knows whether a plugin works.
func (m *hosted) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer panics: a plugin serves no HTTP.
func (m *hosted) GetWebhookServer() webhook.Server {
	panic("a plugin serves no HTTP: do not set webhooks up in the function given to oarlockctrl.Setup")
}

// GetConverterRegistry returns an empty registry: conversion is a webhook.
func (m *hosted) GetConverterRegistry() conversion.Registry { return conversion.NewRegistry() }

// GetLogger returns a logger that writes to the host's log.
func (m *hosted) GetLogger() logr.Logger { return ctrllog.Log }

// GetControllerOptions returns options for controllers that may have the same name in describe and in the
// instance.
func (m *hosted) GetControllerOptions() config.Controller {
	yes, no := true, false
	return config.Controller{SkipNameValidation: &yes, NeedLeaderElection: &no, UsePriorityQueue: &no, RecoverPanic: &no}
}

// GetHTTPClient returns a client all of whose requests fail.
func (m *hosted) GetHTTPClient() *http.Client { return &http.Client{Transport: noTransport{}} }

// GetConfig returns a configuration all of whose requests fail.
func (m *hosted) GetConfig() *rest.Config {
	return &rest.Config{Host: "https://none.invalid", Transport: noTransport{}}
}

// GetCache returns the host's cache.
func (m *hosted) GetCache() cache.Cache { return m.informers }

// GetScheme returns the scheme.
func (m *hosted) GetScheme() *runtime.Scheme { return m.scheme }

// GetClient returns a client that reads what is watched from the host's cache.
func (m *hosted) GetClient() ctrlclient.Client { return m.client }

// GetAPIReader returns a reader that asks the API server.
func (m *hosted) GetAPIReader() ctrlclient.Reader { return &live{m} }

// GetFieldIndexer returns the indexer of the cache.
func (m *hosted) GetFieldIndexer() ctrlclient.FieldIndexer { return m.informers }

// GetRESTMapper returns a mapper for the kinds of the scheme.
func (m *hosted) GetRESTMapper() meta.RESTMapper { return m.mapper }

// GetEventRecorderFor returns a recorder that records through the host.
func (m *hosted) GetEventRecorderFor(string) record.EventRecorder { return &events{m} }

// GetEventRecorder returns a recorder that records through the host.
func (m *hosted) GetEventRecorder(string) recorder.EventRecorder { return &newEvents{events{m}} }

type noTransport struct{}

func (noTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a plugin has no network: %s %s; use the manager's client", request.Method, request.URL)
}
