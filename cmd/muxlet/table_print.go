// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

const (
	// columnGap is between two columns, leastColumn the least that one takes with it:
	// as kubectl has them.
	columnGap   = 3
	leastColumn = 6
)

// tablePrinter writes tables as kubectl does. Columns are aligned by what a
// terminal shows, and nothing in a cell is obeyed by it. Rows that come later are
// aligned with those before.
type tablePrinter struct {
	out                     io.Writer
	wide, noHeaders, colour bool
	// labels have a column each, allLabels is one for all of them.
	labels    []string
	allLabels bool
	// verbatim prints headers as they are, in capitals or not.
	verbatim bool

	// widths of the columns so far; headed says that the headers were written.
	widths []int
	headed bool
}

// print writes the rows, below the headers if these were not written yet.
func (p *tablePrinter) print(table *metav1.Table) error {
	table = p.labelled(table)
	var shown []int
	for i, column := range table.ColumnDefinitions {
		if p.wide || column.Priority == 0 {
			shown = append(shown, i)
		}
	}
	var lines [][]string
	if !p.headed && !p.noHeaders {
		var header []string
		for _, i := range shown {
			header = append(header, p.header(table.ColumnDefinitions[i].Name))
		}
		lines = append(lines, header)
	}
	first := len(lines)
	for _, row := range table.Rows {
		var line []string
		for _, i := range shown {
			line = append(line, cellText(row.Cells[i]))
		}
		lines = append(lines, line)
	}
	p.headed = true
	p.measure(lines)
	var text strings.Builder
	for n, line := range lines {
		for k, cell := range line {
			painted := cell
			if p.colour && n >= first {
				painted = cellColour(table.ColumnDefinitions[shown[k]].Name, cell).paint(cell)
			}
			text.WriteString(painted)
			if k < len(line)-1 {
				text.WriteString(strings.Repeat(" ", p.widths[k]-width(cell)))
			}
		}
		text.WriteByte('\n')
	}
	if _, err := io.WriteString(p.out, text.String()); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

func (p *tablePrinter) header(name string) string {
	if p.verbatim {
		return visible(name)
	}
	return strings.ToUpper(name)
}

// measure widens the columns to what is to be shown.
func (p *tablePrinter) measure(lines [][]string) {
	for _, line := range lines {
		for len(p.widths) < len(line) {
			p.widths = append(p.widths, leastColumn)
		}
		for k, cell := range line {
			p.widths[k] = max(p.widths[k], width(cell)+columnGap)
		}
	}
}

// cellText is one line, whatever is in it.
func cellText(cell any) string {
	text := fmt.Sprint(cell)
	if i := strings.IndexAny(text, "\f\n\r"); i >= 0 {
		text = text[:i] + "..."
	}
	return visible(text)
}

func cellColour(column, cell string) colour {
	switch {
	case column == statusColumn:
		if colour, ok := statusColours[spec.Status(cell)]; ok {
			return colour
		}
		return turnColours[spec.TurnPhase(cell)]
	case column == typeColumn && cell == "Warning":
		return moving
	}
	return plain
}
