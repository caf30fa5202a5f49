package host

import (
	"errors"

	"oarlock.dev/sdk/internal/collector"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Unit is the answer of a function that returns nothing.
type Unit = wit.Result[wit.Unit, types.Failure]

// Call calls the plugin, and turns its error into an answer.
func Call(function func(Guest) error) Unit {
	_, err := call(func(plugin Guest) (struct{}, error) { return struct{}{}, function(plugin) })
	if err != nil {
		return wit.Err[wit.Unit](failure(err))
	}
	return wit.Ok[wit.Unit, types.Failure](wit.Unit{})
}

// CallFor calls the plugin, and turns its value or error into an answer.
func CallFor[T any](function func(Guest) (T, error)) wit.Result[T, types.Failure] {
	value, err := call(function)
	if err != nil {
		return wit.Err[T](failure(err))
	}
	return wit.Ok[T, types.Failure](value)
}

// CallForText is like CallFor, with the error as text.
func CallForText[T any](function func(Guest) (T, error)) wit.Result[T, string] {
	value, err := call(function)
	if err != nil {
		return wit.Err[T](Valid(err.Error()))
	}
	return wit.Ok[T, string](value)
}

// A panic is not recovered: Go writes it with its stack to standard error, which the host shows, and the
// host ends the instance.
func call[T any](function func(Guest) (T, error)) (value T, err error) {
	defer collector.Collect()
	if guest == nil {
		return value, errors.New("no plugin is registered: call oarlock.Register in an init function of package main")
	}
	return function(guest)
}

func failure(err error) types.Failure {
	if guest == nil {
		return types.MakeFailureTerminal(err.Error())
	}
	return guest.Failure(err)
}
