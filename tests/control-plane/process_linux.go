package main

import "syscall"

// endWithParent has the kernel kill the child when we are killed.
func endWithParent() *syscall.SysProcAttr {
	// A group of its own: a Ctrl-C in the terminal is for us, and we end it.
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
