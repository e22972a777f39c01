// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// The formats of get.
const (
	outputTable    = ""
	outputWide     = "wide"
	outputJSON     = "json"
	outputYAML     = "yaml"
	outputName     = "name"
	outputJSONPath = "jsonpath="
)

// outputs are the formats that can be completed.
var outputs = []string{outputWide, outputJSON, outputYAML, outputName, outputJSONPath}

// validateOutput says whether there is such a format.
func (o *getOptions) validateOutput() error {
	switch o.output {
	case outputTable, outputWide, outputJSON, outputYAML, outputName:
		return nil
	}
	if template, ok := strings.CutPrefix(o.output, outputJSONPath); ok {
		_, err := newPathPrinter(template)
		return err
	}
	return usagef("unknown format %q for -o: it must be wide, json, yaml, name or jsonpath=TEMPLATE", o.output)
}

// tabular says whether a person is to read it.
func (o *getOptions) tabular() bool { return o.output == outputTable || o.output == outputWide }

func (o *getOptions) tablePrinter() *tablePrinter {
	return &tablePrinter{out: o.out, noHeaders: o.noHeaders, wide: o.output == outputWide, colour: o.colour != nil && o.colour()}
}

func (o *getOptions) table(table *metav1.Table) error { return o.tablePrinter().print(table) }

// objectPrinter prints objects for a program. Several YAML documents that one of
// them prints are set apart.
func (o *getOptions) objectPrinter() (printers.ResourcePrinter, error) {
	switch o.output {
	case outputName:
		return &printers.NamePrinter{}, nil
	case outputYAML:
		return &printers.YAMLPrinter{}, nil
	case outputJSON:
		return &printers.JSONPrinter{}, nil
	}
	return newPathPrinter(strings.TrimPrefix(o.output, outputJSONPath))
}

// print shows objects for a program: one of them as it is, or all as a List.
func (o *getOptions) print(all []runtime.Object, list bool) error {
	printer, err := o.objectPrinter()
	if err != nil {
		return err
	}
	if list && o.output != outputName {
		items := []runtime.RawExtension{}
		for _, object := range all {
			items = append(items, runtime.RawExtension{Object: object})
		}
		all = []runtime.Object{&corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: items}}
	}
	for _, object := range all {
		if err := o.printObject(printer, object); err != nil {
			return err
		}
	}
	return nil
}

func (o *getOptions) printObject(printer printers.ResourcePrinter, object runtime.Object) error {
	if err := printer.PrintObj(object, o.out); err != nil {
		return fmt.Errorf("print as %s: %w", o.output, err)
	}
	return nil
}

// pathPrinter prints what a JSONPath template finds. What is not there is
// nothing.
type pathPrinter struct{ path *jsonpath.JSONPath }

func newPathPrinter(template string) (*pathPrinter, error) {
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil || template == "" {
		if err == nil {
			err = fmt.Errorf("it is empty, such as %q is not", "{.items[*].metadata.name}")
		}
		return nil, usagef("the JSONPath template %q is not valid: %v", template, err)
	}
	return &pathPrinter{path}, nil
}

// PrintObj implements printers.ResourcePrinter.
func (p *pathPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	plain, err := asJSON(object)
	if err != nil {
		return err
	}
	return p.path.Execute(out, plain)
}

// asJSON is object as a program reads it. Whole numbers stay whole: a pid of a million is
// no 1e+06.
func asJSON(object any) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	var plain any
	if err := utiljson.Unmarshal(data, &plain); err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	return plain, nil
}
