// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/spec"
)

// separator of the documents that the editing test writes. It stands nowhere else.
const separator = "---\n"

// checkout is the content of the manifest directory by path.
type checkout map[string]string

// fault of a document.
type fault int

const (
	// faultless: the document is good.
	faultless fault = iota
	// misspelt: its name can be told.
	misspelt
	// unparsable: the document, but no other one.
	unparsable
	// damaged: the whole file.
	damaged
)

// wanted is what a document asks for.
type wanted struct {
	command, grace string
	suspended      bool
}

// declaration is a document as the model sees it, by regular expressions of its own.
type declaration struct {
	path  string
	part  int
	text  string
	line  int
	fault fault
	wanted
}

var (
	nameField    = regexp.MustCompile(`(?m)^  name: (\S+)`)
	commandField = regexp.MustCompile(`(?m)^    command: \[(.*)\]`)
	graceField   = regexp.MustCompile(`(?m)^  terminationGracePeriodSeconds: (\d+)`)
	suspendField = regexp.MustCompile(`(?m)^  suspend: (true|false).*\n`)
)

const (
	typoMark   = "  workspce:"
	syntaxMark = "  broken: [\n"
	binaryMark = "# \x00\n"
)

func field(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// declarations of a checkout by session.
func (c checkout) declarations() map[string]declaration {
	all := map[string]declaration{}
	for path, content := range c {
		line := 1
		for i, text := range strings.Split(content, separator) {
			if name := field(nameField, text); name != "" {
				d := declaration{path: path, part: i, text: text, wanted: wanted{
					command: field(commandField, text), grace: field(graceField, text), suspended: field(suspendField, text) == "true",
				}}
				d.line = line + strings.Count(text[:strings.Index(text, "apiVersion:")], "\n")
				switch {
				case strings.Contains(content, binaryMark):
					d.fault = damaged
				case strings.Contains(text, syntaxMark):
					d.fault = unparsable
				case strings.Contains(text, typoMark):
					d.fault = misspelt
				}
				all[name] = d
			}
			line += strings.Count(text, "\n") + 1
		}
	}
	return all
}

// with gives a file's content with another text for one part; an empty one takes
// the part out.
func with(content string, part int, text string) string {
	parts := strings.Split(content, separator)
	if text == "" {
		parts = slices.Delete(parts, part, part+1)
	} else {
		parts[part] = text
	}
	return strings.Join(parts, separator)
}

// expected is what the oracle predicts of one session.
type expected struct {
	declaration
	declared bool
	// force is what is in force; launched what the client was started from.
	force    wanted
	launched string
	running  bool
	held     bool
	starts   int
	// uid, pid and generation as they were seen last; pid and generation are
	// cleared when they may be others.
	uid        string
	pid        int
	generation int64
}

// oracle predicts what each edit does to each session. It knows the rules of the
// contract and nothing of the product.
type oracle struct {
	sessions map[string]*expected
	// gone are sessions that were removed; they may come back.
	gone map[string]*expected
}

// edited is told what the directory holds now, and settles what follows.
func (o *oracle) edited(files checkout) {
	now := files.declarations()
	before := len(o.sessions)
	var missing []string
	for name, e := range o.sessions {
		d, declared := now[name]
		e.declaration, e.declared = d, declared
		switch {
		case !declared && !e.held:
			missing = append(missing, name)
		case declared:
			e.held = d.fault == unparsable || d.fault == damaged
		}
	}
	const guardMin, guardPercent = 3, 50
	guarded := len(missing) >= guardMin && len(missing)*100 >= guardPercent*before
	for _, name := range missing {
		if e := o.sessions[name]; guarded {
			e.held = true
		} else {
			o.remove(name)
		}
	}
	for name, d := range now {
		if o.sessions[name] != nil {
			continue
		}
		e := o.gone[name]
		if e == nil {
			e = &expected{}
		}
		delete(o.gone, name)
		e.declaration, e.declared = d, true
		o.sessions[name] = e
	}
	for _, e := range o.sessions {
		e.follow()
	}
}

// remove: its client is ended; what is known of it is kept for its return.
func (o *oracle) remove(name string) {
	e := o.sessions[name]
	delete(o.sessions, name)
	o.gone[name] = &expected{uid: e.uid, starts: e.starts}
}

// follow takes a good document over and starts or stops the client.
func (e *expected) follow() {
	if e.declared && e.fault == faultless && e.force != e.wanted {
		e.force, e.generation = e.wanted, 0
	}
	switch {
	case e.force.suspended:
		e.running, e.pid = false, 0
	case !e.running, e.launched != e.force.command:
		e.running, e.launched = true, e.force.command
		e.restarted()
	}
}

func (e *expected) restarted() { e.starts++; e.pid = 0 }

// differs says how the world is not as predicted; empty when it is. What was free
// to change is learnt.
func (o *oracle) differs(list []spec.Session, starts map[string][]start) string {
	seen := map[string]*spec.Session{}
	for i := range list {
		seen[list[i].Name] = &list[i]
		if o.sessions[list[i].Name] == nil {
			return list[i].Name + " is there"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.sessions)) {
		if seen[name] == nil {
			return name + " is not there"
		}
		if why := o.sessions[name].differs(seen[name], starts[name]); why != "" {
			return name + ": " + why
		}
	}
	for name, all := range starts {
		if e := o.gone[name]; e != nil && len(all) != e.starts {
			return fmt.Sprintf("%s is removed and has %d starts instead of %d", name, len(all), e.starts)
		}
	}
	for name, e := range o.sessions {
		e.uid, e.pid, e.generation = string(seen[name].UID), pid(seen[name]), seen[name].Generation
	}
	return ""
}

func (e *expected) differs(s *spec.Session, starts []start) string {
	quoted := make([]string, len(s.Spec.Client.Command))
	for i, word := range s.Spec.Client.Command {
		quoted[i] = strconv.Quote(word)
	}
	var grace string
	if g := s.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = fmt.Sprint(*g)
	}
	force := wanted{strings.Join(quoted, ", "), grace, s.Spec.Suspend}
	source := spec.SourceStatus{}
	if s.Status.Source != nil {
		source = *s.Status.Source
	}
	good := e.declared && e.fault == faultless
	switch {
	case force != e.force:
		return fmt.Sprintf("in force is %v instead of %v", force, e.force)
	case len(starts) != e.starts:
		return fmt.Sprintf("%d starts instead of %d", len(starts), e.starts)
	case e.running != isRunning(s), !e.running && !rests(s):
		return fmt.Sprintf("it is %s; running is to be %t", spec.DisplayStatus(s), e.running)
	case e.uid != "" && e.uid != string(s.UID):
		return "it has another uid"
	case e.pid != 0 && e.pid != pid(s):
		return fmt.Sprintf("pid %d instead of %d", pid(s), e.pid)
	case e.generation != 0 && e.generation != s.Generation:
		return fmt.Sprintf("generation %d instead of %d", s.Generation, e.generation)
	case e.running && (starts[len(starts)-1].pid != pid(s) || !strings.HasSuffix(e.force.command, strconv.Quote(lastWord(starts)))):
		return "its last start is another one"
	case (source.Held != "") != e.held:
		return fmt.Sprintf("held is %q; to be held is %t", source.Held, e.held)
	case good && (!isTrue(s, spec.ConditionAccepted) || source.Error != ""):
		return "a good document is not accepted: " + source.Error
	case good && (!strings.HasSuffix(source.File, "/"+e.path) || source.Line != e.line):
		return fmt.Sprintf("it is in %s:%d instead of %s:%d", source.File, source.Line, e.path, e.line)
	case !good && isTrue(s, spec.ConditionAccepted) && e.declared:
		return "a bad document is accepted"
	}
	return ""
}

// rests: it is suspended; of one whose document is bad that is shown first.
func rests(s *spec.Session) bool {
	return isTrue(s, spec.ConditionSuspended) && pid(s) == 0 &&
		slices.Contains([]spec.Status{spec.StatusSuspended, spec.StatusInvalid}, spec.DisplayStatus(s))
}

func lastWord(starts []start) string {
	words := strings.Fields(starts[len(starts)-1].words)
	return words[len(words)-1]
}
