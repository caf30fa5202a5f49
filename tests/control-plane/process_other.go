//go:build !linux

package main

import "syscall"

// endWithParent has no effect outside Linux: the servers survive a SIGKILL of this process.
func endWithParent() *syscall.SysProcAttr { return nil }
