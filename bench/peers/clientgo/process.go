package clientgo

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// As in bench/measure.
const (
	window        = 250 * time.Millisecond
	quietWindows  = 8
	idle          = 2 * time.Millisecond
	longestSettle = 60 * time.Second
)

// cpu returns the CPU time that this process has taken, all its threads, in user and in kernel mode.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // It has no way to fail.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// settle waits until the process is at rest.
func settle() {
	begun, quiet, before := time.Now(), 0, cpu()
	for quiet < quietWindows && time.Since(begun) < longestSettle {
		time.Sleep(window)
		now := cpu()
		if now-before < idle {
			quiet++
		} else {
			quiet = 0
		}
		before = now
	}
}

// resident returns how much memory is resident, in bytes, after giving the collector every chance: what is
// garbage, and what it keeps for later, does not count.
func resident() (uint64, error) {
	debug.FreeOSMemory()
	return field("/proc/self/smaps_rollup", "Rss:")
}

func peakResident() (uint64, error) { return field("/proc/self/status", "VmHWM:") }

func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func field(file, name string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found && len(strings.Fields(rest)) > 0 {
			kilobytes, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kilobytes * 1024, err
		}
	}
	return 0, errors.New(fmt.Sprint(file, " has no ", name))
}
