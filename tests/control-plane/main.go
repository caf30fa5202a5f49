// Command control-plane runs a real etcd and a real kube-apiserver on loopback, with RBAC on, for tests.
//
// It says on stdout, as one JSON object per line, what a test needs to know:
//
//	{"event":"ready","url":"https://127.0.0.1:37241","ca":"/tmp/…/ca.crt","kubeconfig":"/tmp/…/kubeconfig", …}
//
// and listens on stdin for lines: "restart" kills the API server (SIGKILL) and starts it again on the same port with
// the same etcd; "stop" only kills it, "start" only starts it. Each is answered by a line with "event": "ready" or
// "stopped". It ends, and everything it started with it, on SIGTERM, on SIGINT and when stdin closes.
//
// What it is not: a cluster. No controller manager, no scheduler, no kubelet: namespaces that are deleted stay
// Terminating, owner references are not collected, no ServiceAccount "default" appears in a new namespace (for
// which reason the admission plugin of that name is off).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// ready is the line that says that the API server answers.
type ready struct {
	Event      string `json:"event"`
	URL        string `json:"url"`
	CA         string `json:"ca"`
	Kubeconfig string `json:"kubeconfig"`
	Token      string `json:"token"`
	Version    string `json:"version"`
	Log        string `json:"log"`
}

func main() {
	assets := flag.String("assets", "", "folder with the executables etcd and kube-apiserver (required)")
	data := flag.String("data", "", "folder for etcd's data, kept at the end; by default a temporary one")
	certificates := flag.String("certificates", "",
		"folder with ca.crt, ca.key, …; what is missing there is made; by default a temporary one")
	flag.Parse()
	if err := run(*assets, *data, *certificates); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		os.Exit(1)
	}
}

func run(assets, data, certificates string) (err error) {
	// The kernel ties "kill the child when the parent dies" to the thread that started it.
	runtime.LockOSThread()
	if assets == "" {
		return errors.New("--assets is required: a folder with the executables etcd and kube-apiserver")
	}
	work, err := os.MkdirTemp("", "oarlock-control-plane-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if data == "" {
		data = filepath.Join(work, "etcd")
	}
	if certificates == "" {
		certificates = filepath.Join(work, "certificates")
	}
	credentials, err := loadOrMake(certificates)
	if err != nil {
		return err
	}

	lines := make(chan string)
	go readLines(os.Stdin, lines)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)

	plane := &plane{assets: assets, work: work, data: data, credentials: credentials}
	defer plane.stop()
	if err := plane.start(signals); err != nil {
		return err
	}
	say(plane.ready())
	for {
		select {
		case <-signals:
			return nil
		case <-plane.etcd.done:
			return fmt.Errorf("etcd ended (%v); its last words:\n%s", plane.etcd.err, plane.etcd.lastWords())
		case <-plane.apiServerDone():
			return fmt.Errorf("kube-apiserver ended (%v); its last words:\n%s",
				plane.apiServer.err, plane.apiServer.lastWords())
		case line, open := <-lines:
			if !open {
				return nil
			}
			if err := plane.obey(line, signals); err != nil {
				return err
			}
		}
	}
}

// obey does what one line of stdin asks for.
func (p *plane) obey(line string, signals <-chan os.Signal) error {
	switch line {
	case "":
		return nil
	case "stop":
		p.stopAPIServer()
		say(map[string]string{"event": "stopped"})
		return nil
	case "restart", "start":
		p.stopAPIServer()
		if err := p.startAPIServer(signals); err != nil {
			return err
		}
		say(p.ready())
		return nil
	default:
		say(map[string]string{"event": "error", "message": fmt.Sprintf("%q is none of restart, stop, start", line)})
		return nil
	}
}

func readLines(from io.Reader, to chan<- string) {
	defer close(to)
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		to <- scanner.Text()
	}
}

func say(what any) {
	line, err := json.Marshal(what)
	if err != nil {
		panic(err) // Only strings are ever said.
	}
	fmt.Println(string(line))
}
