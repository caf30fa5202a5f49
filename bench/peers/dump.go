package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"oarlock.dev/bench-peers/corpus"
)

// dumpCorpus writes Pods as JSON lines to stdout, and their sizes to stderr.
func dumpCorpus(arguments []string) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	n := flags.Int("pods", 10_000, "how many")
	seed := flags.Uint64("seed", corpus.Seed, "which")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	var sizes, managed []int
	for _, pod := range corpus.Pods(*seed, *n) {
		bytes, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		fields, err := json.Marshal(pod.ManagedFields)
		if err != nil {
			return err
		}
		sizes, managed = append(sizes, len(bytes)), append(managed, len(fields))
		if _, err := out.Write(append(bytes, '\n')); err != nil {
			return err
		}
	}
	describe("Pods, bytes of JSON", sizes)
	describe("managedFields of it", managed)
	return out.Flush()
}

func describe(what string, values []int) {
	slices.Sort(values)
	sum := 0
	for _, value := range values {
		sum += value
	}
	n := len(values)
	fmt.Fprintf(os.Stderr, "%s: %d, least %d, median %d, most %d, mean %d\n",
		what, n, values[0], values[n/2], values[n-1], sum/n)
}
