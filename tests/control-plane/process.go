package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// How much of a log is worth repeating when a server ends by itself.
const lastWordsBytes = 4000

// process is one server that we started.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	err  error
	done chan struct{} // Closed when it has ended; err is set before.
}

func startProcess(executable, log string, args ...string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd := exec.Command(executable, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = endWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(executable), log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process the hard way and waits until it is gone. A process that was never started is gone.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // It may have ended by itself.
	<-p.done
}

// lastWords returns the end of its log.
func (p *process) lastWords() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-lastWordsBytes):])
}
