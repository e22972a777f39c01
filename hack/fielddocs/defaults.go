// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaults are the values that the code fills in, by path.
type defaults map[string]reflect.Value

// fill gives a value everything that a document could have: one item in each list of
// objects, and each object that may be left out.
func fill(v reflect.Value) {
	switch t := v.Type(); {
	case isWord(t):
	case t.Kind() == reflect.Struct:
		for f, value := range v.Fields() {
			if f.IsExported() {
				fill(value)
			}
		}
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !isWord(t.Elem()):
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		v.Set(reflect.MakeSlice(t, 1, 1))
		fill(v.Index(0))
	}
}

// collect notes every value below v by its path.
func (d defaults) collect(v reflect.Value, path string) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch t := v.Type(); {
	case t.Kind() == reflect.Struct && !isWord(t):
		for f, value := range v.Fields() {
			if name, _ := tagOf(f); name != "" {
				d.collect(value, path+"."+name)
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		if v.Len() > 0 {
			d.collect(v.Index(0), path+"[]")
		}
	case t.Kind() == reflect.Slice && v.Len() == 0: // an empty list is none
	case !v.IsZero():
		d[path] = v
	}
}

// isWord tells a type that a document writes as one word or number.
func isWord(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity]():
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Map && t.Kind() != reflect.Pointer
}

// said compares the default that a comment gives with that of the code, and returns it as
// a document has it; nil for none.
func said(text string, code reflect.Value) (json.RawMessage, error) {
	word, literal := literalDefault(text)
	switch {
	case !literal && code.IsValid() && !hasDefault.MatchString(text):
		return nil, fmt.Errorf("the code has %v for its default, its comment has none: write \"Default %[1]v.\"", code)
	case !literal:
		return nil, nil
	case !code.IsValid():
		return zeroDefault(word)
	case !means(word, code):
		return nil, fmt.Errorf("its comment says that the default is %s, in the code it is %v", word, code)
	case code.Type() == reflect.TypeFor[metav1.Duration](), code.Type() == reflect.TypeFor[resource.Quantity]():
		return json.Marshal(word) // as a person writes it
	}
	return json.Marshal(code.Interface())
}

// zeroDefault is that of a field that nothing is filled into.
func zeroDefault(word string) (json.RawMessage, error) {
	switch word {
	case "false", "0", `""`, "[]":
		return json.RawMessage(word), nil
	case "0s":
		return json.RawMessage(`"0s"`), nil
	case "none", "empty", "nothing", "{}":
		return nil, nil
	}
	return nil, fmt.Errorf("its comment says that the default is %s, in the code there is none", word)
}

// means says whether a word is a value.
func means(word string, value reflect.Value) bool {
	switch v := value.Interface().(type) {
	case metav1.Duration:
		d, err := time.ParseDuration(word)
		return err == nil && d == v.Duration
	case resource.Quantity:
		q, err := resource.ParseQuantity(word)
		return err == nil && q.Cmp(v) == 0
	}
	if value.Kind() == reflect.Slice {
		var items []string
		for i := range value.Len() {
			items = append(items, fmt.Sprint(value.Index(i)))
		}
		return word == "["+strings.Join(items, ", ")+"]"
	}
	return strings.Trim(word, `"`) == fmt.Sprint(value)
}
