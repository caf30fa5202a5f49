// Command checks sends an API server the requests that programs with client-go send, once in Protobuf and
// once in JSON, and reports the checks that failed.
//
//	checks --kubeconfig FILE [--only NAME]
//
// Each check runs in a namespace of its own. The last line of standard output is JSON: for each content type
// the number of passed checks, the number of all checks, and the errors of the failed ones.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is the deadline of one check, for checks that would never end.
const patience = 60 * time.Second

// env has the namespace and the clients of a check.
type env struct {
	ctx       context.Context
	namespace string
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
}

type check struct {
	name string
	run  func(*env) error
}

// outcome is the result of one content type.
type outcome struct {
	Passed int               `json:"passed"`
	Total  int               `json:"total"`
	Failed map[string]string `json:"failed"`
}

var contentTypes = map[string]string{
	"protobuf": "application/vnd.kubernetes.protobuf",
	"json":     "application/json",
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig (required)")
	only := flag.String("only", "", "run only checks whose name contains this")
	flag.Parse()
	if err := run(*kubeconfig, *only); err != nil {
		fmt.Fprintln(os.Stderr, "checks:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, only string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	outcomes := map[string]*outcome{}
	for name, contentType := range contentTypes {
		config := rest.CopyConfig(config)
		config.ContentType = contentType
		// Only this type, so that a response without Protobuf fails.
		config.AcceptContentTypes = contentType
		outcome := &outcome{Failed: map[string]string{}}
		outcomes[name] = outcome
		for index, check := range checks {
			if !strings.Contains(check.name, only) {
				continue
			}
			outcome.Total++
			if err := attempt(config, check, fmt.Sprintf("check-%s-%d", name, index)); err != nil {
				outcome.Failed[check.name] = err.Error()
				fmt.Fprintf(os.Stderr, "%s: %s: %v\n", name, check.name, err)
			} else {
				outcome.Passed++
			}
		}
	}
	line, err := json.Marshal(outcomes)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return nil
}

func attempt(config *rest.Config, check check, namespace string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panicked: %v", panicked)
		}
	}()
	// Custom resources and discovery have no Protobuf on any server.
	json := rest.CopyConfig(config)
	json.ContentType, json.AcceptContentTypes = "application/json", "application/json"
	e := &env{
		ctx: ctx, namespace: namespace, config: config,
		typed: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(json),
		metadata: metadata.NewForConfigOrDie(config), discovery: discovery.NewDiscoveryClientForConfigOrDie(json),
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := e.typed.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	defer func() {
		_ = e.typed.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
	}()
	return check.run(e)
}
