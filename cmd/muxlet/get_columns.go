// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// noValue stands where a path of custom-columns finds nothing: kubectl's word, which
// scripts know.
const noValue = "<none>"

// columnPrinter prints a row for each object, whose cells are what paths find in it.
type columnPrinter struct {
	columns []metav1.TableColumnDefinition
	paths   []*jsonpath.JSONPath
	table   *tablePrinter
}

// newColumnPrinter reads HEADER:PATH,HEADER:PATH.
func (o *getOptions) newColumnPrinter(text string) (*columnPrinter, error) {
	var headers, paths []string
	for _, column := range splitColumns(text) {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, usagef("the column %q of -o custom-columns is not HEADER:PATH, such as NAME:.metadata.name,PID:.status.client.pid", column)
		}
		headers, paths = append(headers, header), append(paths, path)
	}
	return o.columnsOf(headers, paths)
}

// newColumnFilePrinter reads a line of headers and a line of paths, apart by blanks.
func (o *getOptions) newColumnFilePrinter(text string) (*columnPrinter, error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	second, more, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	headers, paths := strings.Fields(first), strings.Fields(second)
	if len(headers) == 0 || len(headers) != len(paths) || strings.TrimSpace(more) != "" {
		return nil, usagef("the file of -o custom-columns-file must have a line of headers and a line of as many paths; it has %d headers and %d paths", len(headers), len(paths))
	}
	return o.columnsOf(headers, paths)
}

func (o *getOptions) columnsOf(headers, paths []string) (*columnPrinter, error) {
	p := &columnPrinter{table: &tablePrinter{out: o.out, noHeaders: o.noHeaders, verbatim: true}}
	for i, header := range headers {
		path, err := relaxedPath(header, paths[i])
		if err != nil {
			return nil, usagef("the path %q of column %s is not valid: %v", paths[i], header, err)
		}
		p.columns = append(p.columns, metav1.TableColumnDefinition{Name: header, Type: "string"})
		p.paths = append(p.paths, path)
	}
	return p, nil
}

// splitColumns splits at the commas that are not within brackets or braces.
func splitColumns(text string) []string {
	var columns []string
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				columns = append(columns, text[start:i])
				start = i + 1
			}
		}
	}
	return append(columns, text[start:])
}

// PrintObj implements printers.ResourcePrinter.
func (p *columnPrinter) PrintObj(object runtime.Object, _ io.Writer) error {
	return p.printAll([]runtime.Object{object})
}

// printAll prints a row for each object, below the headers if these were not printed yet.
func (p *columnPrinter) printAll(objects []runtime.Object) error {
	table := &metav1.Table{ColumnDefinitions: p.columns}
	for _, object := range objects {
		plain, err := asJSON(object)
		if err != nil {
			return err
		}
		row := metav1.TableRow{}
		for i, path := range p.paths {
			cell, err := cellOf(path, plain)
			if err != nil {
				return usagef("the path of column %s does not fit: %v", p.columns[i].Name, err)
			}
			row.Cells = append(row.Cells, cell)
		}
		table.Rows = append(table.Rows, row)
	}
	return p.table.print(table)
}

// cellOf is what a path finds, several things with commas in between.
func cellOf(path *jsonpath.JSONPath, object any) (string, error) {
	found, err := path.FindResults(object)
	if err != nil {
		return "", err
	}
	var values []string
	for _, results := range found {
		for _, result := range results {
			if result.IsValid() && result.CanInterface() && result.Interface() != nil {
				values = append(values, fmt.Sprint(result.Interface()))
			}
		}
	}
	if len(values) == 0 {
		return noValue, nil
	}
	return strings.Join(values, ","), nil
}
