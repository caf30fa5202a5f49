// Command control-plane runs a real etcd and a real kube-apiserver on loopback, with RBAC, for tests.
//
// It prints its state to stdout, one JSON object per line:
//
//	{"event":"ready","url":"https://127.0.0.1:37241","ca":"/tmp/…/ca.crt","kubeconfig":"/tmp/…/kubeconfig", …}
//
// It reads commands from stdin, one per line: "restart" kills the API server (SIGKILL) and starts it again on the same
// port with the same etcd; "stop" only kills it, "start" only starts it. It answers each command with a line whose event
// is "ready" or "stopped". It ends with both servers on SIGTERM, on SIGINT, and when stdin closes.
//
// It is not a cluster: without a controller manager, a scheduler and a kubelet, deleted namespaces stay Terminating,
// owner references have no effect, and a new namespace has no ServiceAccount "default". Therefore the admission plugin
// ServiceAccount is off.
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

// ready is the line for an API server that is ready.
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
	data := flag.String("data", "", "folder for etcd's data, which is kept; default: a temporary folder")
	certificates := flag.String("certificates", "",
		"folder with ca.crt, ca.key, …; missing files are created; default: a temporary folder")
	flag.Parse()
	if err := run(*assets, *data, *certificates); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		os.Exit(1)
	}
}

func run(assets, data, certificates string) (err error) {
	// The kernel kills a child with Pdeathsig when the thread that started it ends.
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
	credentials, err := loadOrCreate(certificates)
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
	printLine(plane.ready())
	for {
		select {
		case <-signals:
			return nil
		case <-plane.etcd.done:
			return fmt.Errorf("etcd ended (%v); the end of its log:\n%s", plane.etcd.err, plane.etcd.endOfLog())
		case <-plane.apiServerDone():
			return fmt.Errorf("kube-apiserver ended (%v); the end of its log:\n%s",
				plane.apiServer.err, plane.apiServer.endOfLog())
		case line, open := <-lines:
			if !open {
				return nil
			}
			if err := plane.run(line, signals); err != nil {
				return err
			}
		}
	}
}

// run runs one command from stdin.
func (p *plane) run(line string, signals <-chan os.Signal) error {
	switch line {
	case "":
		return nil
	case "stop":
		p.stopAPIServer()
		printLine(map[string]string{"event": "stopped"})
		return nil
	case "restart", "start":
		p.stopAPIServer()
		if err := p.startAPIServer(signals); err != nil {
			return err
		}
		printLine(p.ready())
		return nil
	default:
		printLine(map[string]string{"event": "error", "message": fmt.Sprintf("unknown command %q; the commands are restart, stop and start", line)})
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

func printLine(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err) // Strings can always be encoded.
	}
	fmt.Println(string(line))
}
