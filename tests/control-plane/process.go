package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// The length of the end of a log that an error contains.
const endOfLogBytes = 4000

// process is a started server.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	err  error
	done chan struct{} // Closed when the process has ended; err is set before that.
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

// kill kills the process, and waits until it has ended. It does nothing for a process that was never started.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // The process may have ended already.
	<-p.done
}

// endOfLog returns the end of its log.
func (p *process) endOfLog() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-endOfLogBytes):])
}
