package oarlocktest

import (
	"slices"
	"strings"
)

// selects returns whether a label selector in the syntax of Kubernetes matches labels.
func selects(selector string, labels map[string]string) bool {
	for _, requirement := range requirements(selector) {
		if !meets(requirement, labels) {
			return false
		}
	}
	return true
}

// requirements splits a selector at the commas that are not in parentheses.
func requirements(selector string) []string {
	depth := 0
	return strings.FieldsFunc(selector, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}

func meets(requirement string, labels map[string]string) bool {
	if name, values, ok := strings.Cut(requirement, "("); ok {
		words := strings.Fields(name)
		var list []string
		for _, value := range strings.Split(strings.TrimSuffix(strings.TrimSpace(values), ")"), ",") {
			list = append(list, strings.TrimSpace(value))
		}
		value, exists := labels[words[0]]
		isListed := exists && slices.Contains(list, value)
		return isListed == (words[1] == "in")
	}
	for _, operator := range []string{"!=", "==", "="} {
		if name, value, ok := strings.Cut(requirement, operator); ok {
			there, exists := labels[strings.TrimSpace(name)]
			isEqual := exists && there == strings.TrimSpace(value)
			return isEqual == (operator != "!=")
		}
	}
	name, isNegated := strings.CutPrefix(strings.TrimSpace(requirement), "!")
	_, exists := labels[strings.TrimSpace(name)]
	return exists != isNegated
}
