// Command checks asks an API server what programs with client-go ask it, once in Protobuf and once in JSON, and says which
// of the checks held.
//
//	checks --kubeconfig FILE [--only NAME]
//
// Each check runs in a namespace of its own. The last line of standard output is JSON: per content type how many passed, of
// how many, and what the others said.
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

// patience bounds one check; it only ends what would never end.
const patience = 60 * time.Second

// env is what a check works with.
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

// outcome is how one content type did.
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
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server (required)")
	only := flag.String("only", "", "run the checks whose name contains this")
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
		// Nothing else: what cannot be had in Protobuf is to be seen.
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
