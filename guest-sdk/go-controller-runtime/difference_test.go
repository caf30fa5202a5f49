package oarlockctrl

import (
	"reflect"
	"testing"
)

type fields = map[string]any

func TestThePatchHasWhatHasChanged(t *testing.T) {
	from := fields{
		"metadata": fields{"name": "a", "resourceVersion": "1", "labels": fields{"x": "1", "y": "2"}},
		"spec":     fields{"list": []any{1.0, 2.0}, "same": fields{"a": "b"}}, "status": fields{"ready": nil},
	}
	to := fields{
		"metadata": fields{"name": "a", "resourceVersion": "2", "labels": fields{"x": "1"}},
		"spec":     fields{"list": []any{1.0}, "same": fields{"a": "b"}, "new": nil}, "status": fields{"ready": nil},
	}
	want := fields{"metadata": fields{"labels": fields{"y": nil}}, "spec": fields{"list": []any{1.0}}}
	if got := difference(from, to); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := difference(from, from); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestAWriteOfTheStatusLeavesTheRest(t *testing.T) {
	from, to := fields{"spec": "old", "status": "old"}, fields{"spec": "new", "status": "new"}
	if got := sent(from, to, "status"); !reflect.DeepEqual(got, fields{"spec": "old", "status": "new"}) {
		t.Errorf("got %v", got)
	}
	if got := sent(from, to, ""); !reflect.DeepEqual(got, fields{"spec": "new", "status": "old"}) {
		t.Errorf("got %v", got)
	}
}
