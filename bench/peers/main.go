// Command bench-peers has the peers of the benchmark, and the API servers for all subjects.
package main

import (
	"fmt"
	"os"

	"oarlock.dev/bench-peers/chaos"
	"oarlock.dev/bench-peers/clientgo"
	"oarlock.dev/bench-peers/load"
	"oarlock.dev/bench-peers/recovery"
	"oarlock.dev/bench-peers/server"
)

var commands = map[string]func(arguments []string) error{
	"chaos":     chaos.Run,
	"corpus":    dumpCorpus,
	"server":    server.Run,
	"client-go": clientgo.Run,
	"load":      load.Load,
	"recovery":  recovery.Run,
	"write":     load.Write,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: bench-peers corpus|server|chaos|client-go|load|recovery|write FLAGS")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}
