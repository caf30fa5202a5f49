package main

import "syscall"

// endWithParent makes the kernel kill the child when this process ends.
func endWithParent() *syscall.SysProcAttr {
	// With a process group of its own the child does not receive Ctrl-C; this process ends it.
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
