// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// The formats of get. Those that end in an equals sign want something behind it.
const (
	outputTable        = ""
	outputWide         = "wide"
	outputJSON         = "json"
	outputYAML         = "yaml"
	outputName         = "name"
	outputJSONPath     = "jsonpath="
	outputJSONPathFile = "jsonpath-file="
	outputColumns      = "custom-columns="
	outputColumnsFile  = "custom-columns-file="
)

// outputs are the formats that can be completed.
var outputs = []string{outputWide, outputJSON, outputYAML, outputName, outputJSONPath, outputJSONPathFile, outputColumns, outputColumnsFile}

// outputWords are the formats for a person.
const outputWords = "wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-file=FILE, custom-columns=HEADER:PATH,... or custom-columns-file=FILE"

// validateOutput says whether there is such a format.
func (o *getOptions) validateOutput() error {
	if o.tabular() {
		return nil
	}
	if o.showLabels || len(o.labelColumns) > 0 {
		return usagef("--show-labels and -L are for tables: -o %s prints none", o.output)
	}
	_, err := o.objectPrinter()
	return err
}

// tabular says whether a person is to read it.
func (o *getOptions) tabular() bool { return o.output == outputTable || o.output == outputWide }

func (o *getOptions) tablePrinter() *tablePrinter {
	return &tablePrinter{
		out: o.out, noHeaders: o.noHeaders, wide: o.output == outputWide, colour: o.colour != nil && o.colour(),
		labels: o.labelColumns, allLabels: o.showLabels,
	}
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
	format, argument, given := strings.Cut(o.output, "=")
	if !given {
		return nil, o.unknownFormat(format)
	}
	switch format + "=" {
	case outputJSONPath:
		return newPathPrinter(argument)
	case outputJSONPathFile:
		template, err := o.readArgument(argument)
		if err != nil {
			return nil, err
		}
		return newPathPrinter(template)
	case outputColumns:
		return o.newColumnPrinter(argument)
	case outputColumnsFile:
		text, err := o.readArgument(argument)
		if err != nil {
			return nil, err
		}
		return o.newColumnFilePrinter(text)
	}
	return nil, o.unknownFormat(format)
}

func (o *getOptions) unknownFormat(format string) error {
	known := make([]string, 0, len(outputs))
	for _, word := range outputs {
		known = append(known, strings.TrimSuffix(word, "="))
	}
	return usagef("unknown format %q for -o: it must be %s%s", o.output, outputWords, didYouMean(format, known))
}

// maxTemplate bounds what is read of a file with a template, in bytes.
const maxTemplate = 1 << 20

// readArgument reads the file that a format names.
func (o *getOptions) readArgument(path string) (string, error) {
	if path == "" {
		return "", usagef("-o %s needs the path of a file behind it", o.output)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the file of -o: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxTemplate))
	if err != nil {
		return "", fmt.Errorf("read the file of -o: %w", err)
	}
	return string(data), nil
}

// print shows objects for a program: one of them as it is, or all as a List.
func (o *getOptions) print(all []runtime.Object, list bool) error {
	printer, err := o.objectPrinter()
	if err != nil {
		return err
	}
	if columns, ok := printer.(*columnPrinter); ok {
		return columns.printAll(all)
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
