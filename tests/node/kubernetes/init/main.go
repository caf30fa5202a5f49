// Command init is the first process of the node's process namespace, and, called as (a link named) pause, of
// each Pod's. It waits for the end of processes that have lost their parent.
//
// init ends when its standard input does, which is a pipe from the process that started the node: when that
// process ends, however it ends, so does the node. pause ends on SIGTERM.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			for {
				pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
				if pid <= 0 && err != syscall.EINTR {
					break
				}
			}
		}
	}()
	if filepath.Base(os.Args[0]) == "pause" {
		<-ended
		return
	}
	fmt.Println("started")
	io.Copy(io.Discard, os.Stdin)
}
