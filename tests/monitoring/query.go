package main

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ofTarget are the labels that Prometheus adds to every series of a Pod.
var ofTarget = []string{"job", "instance", "namespace", "pod", "container"}

// query is a PromQL query, and where it is.
type query struct {
	place, text string
	// results are labels that a text about the results names.
	results []string
}

// faults returns what a query names and the page does not have.
func (q query) faults(page metrics) []string {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", q.text, err)}
	}
	var faults []string
	known := map[string]bool{}
	add := func(format string, values ...any) {
		faults = append(faults, fmt.Sprintf(format, values...)+" in "+q.text)
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		series, ok := page[selector.Name]
		if !ok {
			add("the page has no metric %q", selector.Name)
			return nil
		}
		of := page.labels(selector.Name)
		for label := range of {
			known[label] = true
		}
		for _, matcher := range selector.LabelMatchers {
			switch {
			case matcher.Name == labels.MetricName || slices.Contains(ofTarget, matcher.Name):
			case !of[matcher.Name]:
				add("%s has no label %q", selector.Name, matcher.Name)
			case matcher.Type == labels.MatchEqual && !hasValue(series, matcher):
				add("no series of %s has %s", selector.Name, matcher)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		var names []string
		switch node := node.(type) {
		case *parser.AggregateExpr:
			names = node.Grouping
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				names = append(append(names, node.VectorMatching.MatchingLabels...), node.VectorMatching.Include...)
			}
		}
		for _, name := range names {
			if !known[name] && !slices.Contains(ofTarget, name) {
				add("no metric has the label %q", name)
			}
		}
		return nil
	})
	for _, name := range q.results {
		if !known[name] && !slices.Contains(ofTarget, name) {
			add("a text names the label %q, which no metric has,", name)
		}
	}
	return faults
}

func hasValue(series []map[string]string, matcher *labels.Matcher) bool {
	return slices.ContainsFunc(series, func(labels map[string]string) bool {
		return matcher.Matches(labels[matcher.Name])
	})
}
