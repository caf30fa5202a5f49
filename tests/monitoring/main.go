// Program monitoring checks a page of metrics, alert rules and dashboards with the parsers of Prometheus, and
// evaluates their queries.
//
//	monitoring check PAGE RULES DASHBOARD...
//	monitoring evaluate RULES DASHBOARD PAGE...
//
// check: the page is the text of /metrics. promlint, which `promtool check metrics` runs, checks it. Each
// query of the rules and dashboards must parse, and must name metrics, labels and label values that the page
// has. The program prints each fault in a line, and ends with exit code 1 if there are any.
//
// evaluate: each page is that of one target. The program prints each result of each query in a line.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func main() {
	if len(os.Args) < 4 {
		usage()
	}
	var lines []string
	var err error
	switch os.Args[1] {
	case "check":
		lines, err = check(os.Args[2], os.Args[3], os.Args[4:])
	case "evaluate":
		lines, err = evaluate(os.Args[2], os.Args[3], os.Args[4:])
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	if os.Args[1] == "check" && len(lines) > 0 {
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: monitoring check PAGE RULES DASHBOARD...")
	fmt.Fprintln(os.Stderr, "       monitoring evaluate RULES DASHBOARD PAGE...")
	os.Exit(2)
}

func check(page, rules string, dashboards []string) ([]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	var faults []string
	for _, problem := range problems {
		faults = append(faults, fmt.Sprintf("%s: %s: %s", page, problem.Metric, problem.Text))
	}
	metrics, err := readPage(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	queries, err := ruleQueries(rules)
	if err != nil {
		return nil, err
	}
	for _, dashboard := range dashboards {
		more, err := dashboardQueries(dashboard)
		if err != nil {
			return nil, err
		}
		queries = append(queries, more...)
	}
	for _, query := range queries {
		for _, fault := range query.faults(metrics) {
			faults = append(faults, fmt.Sprintf("%s: %s", query.place, fault))
		}
	}
	return faults, nil
}
