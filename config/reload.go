// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// restart says of each setting why a running daemon cannot take another value of
// it; empty when it can, and does.
var restart = map[string]string{
	"manifests":                      "",
	"stateDir":                       "the records are there, and the daemon holds its lock",
	"runtimeDir":                     "the sockets are there, and the daemon holds its lock",
	"defaultClientClassName":         "",
	"sessionDefaults":                "",
	"tmux.command":                   "the tmux server was started with it",
	"tmux.server":                    "",
	"tmux.unit":                      "",
	"tmux.prefix":                    "",
	"tmux.include":                   "",
	"tmux.timeout":                   "",
	"scopes":                         "",
	"resyncPeriod":                   "",
	"observation.unknownGracePeriod": "",
	"observation.bootIDPath":         "it is read once, when the daemon starts",
	"backOff.initial":                "",
	"backOff.max":                    "",
	"backOff.resetAfter":             "",
	"starts.maxInFlight":             "",
	"massDeath.minSessions":          "",
	"massDeath.percent":              "",
	"removal.settle":                 "",
	"removal.guardMin":               "",
	"removal.guardPercent":           "",
	"activity.reportTTL":             "",
	"activity.focusAfter":            "",
	"notifications.command":          "",
	"notifications.on":               "",
	"notifications.minInterval":      "",
	"notifications.timeout":          "",
	"notifications.terminal":         "",
	"retention.events":               "",
	"retention.turns":                "",
	"retention.turnAge":              "",
	"retention.turnBytes":            "",
	"retention.archive":              "",
	"retention.archiveBytes":         "",
	"retention.screenBytes":          "",
	"retention.reportSpool":          "",
	"metrics.listen":                 "",
	"logging.format":                 "a log has one format from its first line to its last",
	"logging.verbosity":              "",
}

// RestartReason says why a change of a setting, by its path, needs a restart of
// the daemon; empty when it does not.
func RestartReason(setting string) string { return restart[setting] }

// Setting is one setting in force.
type Setting struct {
	// Name is its path, such as backOff.initial.
	Name string
	// Value as a person writes it, and where it comes from.
	Value, Origin string
}

// Settings are all settings, in the order of the file.
func (e *Effective) Settings() []Setting {
	var all []Setting
	e.visit(func(name string, v reflect.Value) {
		all = append(all, Setting{Name: name, Value: printed(v), Origin: e.Origin[name]})
	})
	return all
}

// Changed are the names of the settings that have another value than in other.
func (e *Effective) Changed(other *Effective) []string {
	var names []string
	before := other.Settings()
	for i, s := range e.Settings() {
		if s.Value != before[i].Value {
			names = append(names, s.Name)
		}
	}
	return names
}

// Onto gives what a daemon that runs with the given settings uses once e is
// loaded: those that need a restart stay as they are. waiting are the names of
// those that e has another value of.
func (e *Effective) Onto(running *Effective) (inUse *Effective, waiting []string) {
	out := *e
	out.Origin = map[string]string{}
	before := map[string]reflect.Value{}
	running.visit(func(name string, v reflect.Value) { before[name] = v })
	out.visit(func(name string, v reflect.Value) {
		out.Origin[name] = e.Origin[name]
		if restart[name] == "" {
			return
		}
		out.Origin[name] = running.Origin[name]
		if printed(v) != printed(before[name]) {
			waiting = append(waiting, name)
			v.Set(before[name])
		}
	})
	out.Paths = running.Paths
	return &out, waiting
}

// visit calls f with each setting, in the order of the file.
func (e *Effective) visit(f func(name string, v reflect.Value)) {
	visit(reflect.ValueOf(&e.MuxletConfiguration).Elem(), "", f)
}

func visit(v reflect.Value, prefix string, f func(name string, v reflect.Value)) {
	for field, value := range v.Fields() {
		name, isSetting := settingName(field)
		switch {
		case !isSetting:
		case isSection(value.Type()):
			visit(value, prefix+name+".", f)
		default:
			f(prefix+name, value)
		}
	}
}

// isSection tells a group of settings from one that is a struct in Go.
func isSection(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[spec.SessionSpec]():
		return false
	}
	return t.Kind() == reflect.Struct
}

// printed is a value as a person writes it.
func printed(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case metav1.Duration:
		return short(value.Duration)
	case resource.Quantity:
		return value.String()
	case spec.SessionSpec:
		text, err := json.Marshal(spec.GivenFields(&value))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if items, ok := wordsOf(v); ok {
		for i, item := range items {
			if item == "" || strings.ContainsAny(item, " \t\n\"\\") {
				// Two commands that differ in where a word ends are two commands.
				items[i] = strconv.Quote(item)
			}
		}
		return strings.Join(items, " ")
	}
	return fmt.Sprint(v.Interface())
}

// wordsOf are the words of a setting that is a list of them.
func wordsOf(v reflect.Value) (words []string, ok bool) {
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.String {
		return nil, false
	}
	for _, item := range v.Seq2() {
		words = append(words, item.String())
	}
	return words, true
}

// File is the settings file that Load reads if it is there; empty when no place
// for one is known.
func File(in Inputs) string {
	path, _, err := (&loader{in: in}).filePath()
	if err != nil {
		return ""
	}
	return path
}

// Reload is Load for a daemon that runs with the given settings. A file that was
// in use and is gone or empty is an error: it is being replaced, or what it is on
// is not mounted, and the defaults are nobody's wish then.
func Reload(in Inputs, running *Effective) (*Effective, error) {
	next, err := Load(in)
	if err != nil {
		return nil, err
	}
	used := slices.Contains(slices.Collect(maps.Values(running.Origin)), OriginFile)
	switch {
	case !used:
	case next.File == "":
		return nil, fmt.Errorf("%s: the settings file is gone: put it back, or %s", running.File, withoutFile(running))
	case next.empty:
		return nil, fmt.Errorf("%s: the settings file is empty: write its settings again, or %s", running.File, withoutFile(running))
	}
	return next, nil
}

// withoutFile says how to do without a settings file.
func withoutFile(running *Effective) string {
	if running.SessionsFromFile() {
		return "write one that says no more than its apiVersion and kind to go on with the defaults; what it gave to sessions stays in force until then"
	}
	return "start the daemon again to go on with the defaults"
}

// Problems are the lines of an error of Load or Reload, each with its place.
func Problems(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}
