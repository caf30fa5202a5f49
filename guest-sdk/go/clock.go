package oarlock

import (
	"time"

	"oarlock.dev/sdk/internal/host"
)

// Now returns the time by the host's clock, in whole milliseconds and in UTC. In a test of a plugin the
// clock stands still; time.Now is the machine's.
func Now() time.Time {
	now := host.Current().Clock.Now()
	return time.Unix(int64(now.Seconds), int64(now.Nanoseconds)).UTC()
}

// Elapsed returns the time since this instance was created. It never decreases.
func Elapsed() time.Duration {
	return time.Duration(host.Current().Clock.ElapsedMs() * float64(time.Millisecond))
}
