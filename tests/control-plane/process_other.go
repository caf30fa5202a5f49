//go:build !linux

package main

import "syscall"

// endWithParent can only be asked for on Linux: elsewhere a SIGKILL to us leaves the servers behind.
func endWithParent() *syscall.SysProcAttr { return nil }
