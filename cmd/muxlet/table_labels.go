// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelled is the table with the columns for labels behind the others, as kubectl has them.
func (p *tablePrinter) labelled(table *metav1.Table) *metav1.Table {
	if len(p.labels) == 0 && !p.allLabels {
		return table
	}
	more := &metav1.Table{ColumnDefinitions: slices.Clone(table.ColumnDefinitions)}
	for _, key := range p.labels {
		more.ColumnDefinitions = append(more.ColumnDefinitions, metav1.TableColumnDefinition{Name: key[strings.LastIndex(key, "/")+1:], Type: "string"})
	}
	if p.allLabels {
		more.ColumnDefinitions = append(more.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Labels", Type: "string"})
	}
	for _, row := range table.Rows {
		labels := map[string]string{}
		if object, err := meta.Accessor(row.Object.Object); err == nil {
			labels = object.GetLabels()
		}
		cells := slices.Clone(row.Cells)
		for _, key := range p.labels {
			cells = append(cells, orAbsent(labels[key]))
		}
		if p.allLabels {
			cells = append(cells, orAbsent(strings.ReplaceAll(labelList(labels), ", ", ",")))
		}
		more.Rows = append(more.Rows, metav1.TableRow{Cells: cells, Object: row.Object})
	}
	return more
}
