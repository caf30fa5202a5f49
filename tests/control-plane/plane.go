package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A start takes 4 to 8 seconds on an idle machine, and much longer on a busy one.
const startLimit = 5 * time.Minute

// plane is one etcd and one kube-apiserver.
type plane struct {
	assets      string
	work        string
	data        string
	credentials credentials

	etcd      *process
	apiServer *process
	etcdURL   string
	port      int
}

func (p *plane) ready() ready {
	return ready{
		Event:      "ready",
		URL:        p.url(),
		CA:         p.credentials.path("ca.crt"),
		Kubeconfig: filepath.Join(p.work, "kubeconfig"),
		Token:      p.credentials.token,
		Version:    p.version(),
		Log:        filepath.Join(p.work, "kube-apiserver.log"),
	}
}

func (p *plane) url() string { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }

func (p *plane) start(signals <-chan os.Signal) error {
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	p.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", client)
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peer)
	p.etcd, err = startProcess(filepath.Join(p.assets, "etcd"), filepath.Join(p.work, "etcd.log"),
		"--name=tests", "--data-dir="+p.data,
		"--listen-client-urls="+p.etcdURL, "--advertise-client-urls="+p.etcdURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=tests="+peerURL,
		// The data need not survive a power failure. With fsync every write would wait for the disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--quota-backend-bytes=4294967296",
	)
	if err != nil {
		return err
	}
	if err := waitFor(p.etcdURL+"/health", http.DefaultClient, "", p.etcd, signals); err != nil {
		return err
	}
	if p.port, err = freePort(); err != nil {
		return err
	}
	if err := p.credentials.writeKubeconfig(filepath.Join(p.work, "kubeconfig"), p.url()); err != nil {
		return err
	}
	return p.startAPIServer(signals)
}

func (p *plane) startAPIServer(signals <-chan os.Signal) error {
	c := p.credentials
	var err error
	p.apiServer, err = startProcess(filepath.Join(p.assets, "kube-apiserver"), filepath.Join(p.work, "kube-apiserver.log"),
		"--etcd-servers="+p.etcdURL,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port), "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--client-ca-file="+c.path("ca.crt"), "--token-auth-file="+c.path("tokens.csv"),
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("service-account.key"),
		"--service-account-signing-key-file="+c.path("service-account.key"),
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
		"--cert-dir="+filepath.Join(p.work, "self-signed"),
	)
	if err != nil {
		return err
	}
	return waitFor(p.url()+"/readyz", c.client(), c.token, p.apiServer, signals)
}

// apiServerDone is closed when the API server ends by itself. It is nil while the API server is stopped on purpose.
func (p *plane) apiServerDone() <-chan struct{} {
	if p.apiServer == nil {
		return nil
	}
	return p.apiServer.done
}

func (p *plane) stopAPIServer() {
	p.apiServer.kill()
	p.apiServer = nil
}

func (p *plane) stop() {
	p.stopAPIServer()
	p.etcd.kill()
}

// version returns the version of the API server, such as v1.36.2.
func (p *plane) version() string {
	request, err := http.NewRequest(http.MethodGet, p.url()+"/version", nil)
	if err != nil {
		return ""
	}
	request.Header.Set("Authorization", "Bearer "+p.credentials.token)
	response, err := p.credentials.client().Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	return gitVersion(response.Body)
}

// waitFor repeats a request until the response is 200, the process ends, or the limit has passed.
func waitFor(url string, client *http.Client, token string, process *process, signals <-chan os.Signal) error {
	deadline := time.After(startLimit)
	for {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := "none"
		if response, err := client.Do(request); err != nil {
			answer = err.Error()
		} else {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			answer = fmt.Sprintf("%s: %s", response.Status, body)
		}
		select {
		case <-process.done:
			return fmt.Errorf("%s ended before it was ready (%v); the end of its log:\n%s",
				process.name, process.err, process.endOfLog())
		case <-signals:
			return errors.New("received a signal while starting")
		case <-deadline:
			return fmt.Errorf("%s was not ready within %s; the last response: %s", process.name, startLimit, answer)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort returns a port that is free at the moment.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// client returns a client that trusts only this CA.
func (c credentials) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: c.pool},
			DisableKeepAlives: true,
		},
		Timeout: 10 * time.Second,
	}
}
