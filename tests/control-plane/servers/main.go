// Command servers is etcd and kube-apiserver in one file, as their own projects build them: called as (a link
// named) etcd it is the one, as kube-apiserver the other, with the flags that each has upstream.
//
// It exists because neither project publishes its servers in a place that every build of ours can reach,
// while the Go module proxy has their sources.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "called as %q: link me as etcd or kube-apiserver\n", name)
		os.Exit(2)
	}
}
