package corpus

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// begin is when the youngest template was made; everything else follows. No clock is read.
var begin = time.Date(2026, time.March, 2, 6, 0, 0, 0, time.UTC)

// source is a random source of its own for each thing, so that one can be made without making all before it.
func source(seed, kind, index uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed<<8|kind, index))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some returns n of them, in the order they are in.
func some[T any](r *rand.Rand, from []T, n int) []T {
	chosen := make([]T, 0, n)
	for i, each := range from {
		if r.IntN(len(from)-i) < n-len(chosen) {
			chosen = append(chosen, each)
		}
	}
	return chosen
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func hex64(r *rand.Rand) string {
	var bytes [32]byte
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(bytes[:])
}

func uid(r *rand.Rand) types.UID {
	a, b := r.Uint64(), r.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		uint32(a>>32), uint16(a>>16), uint16(a)&0xfff, uint16(b>>48)&0x3fff|0x8000, b&0xffffffffffff))
}

// suffix is made of the letters that the API server makes random names of.
func suffix(r *rand.Rand, n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = letters[r.IntN(len(letters))]
	}
	return string(bytes)
}

func after(r *rand.Rand, t metav1.Time, atMostSeconds int) metav1.Time {
	return metav1.NewTime(t.Add(time.Duration(r.IntN(atMostSeconds)) * time.Second))
}
