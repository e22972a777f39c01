// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
)

// value is a document as data: a mapping with ordered keys, a list or a scalar.
type value struct {
	keys   []string
	fields map[string]*value
	list   []*value
	isList bool
	scalar any
}

func (v *value) set(key string, to *value) {
	if v.fields == nil {
		v.fields = map[string]*value{}
	}
	if _, again := v.fields[key]; !again {
		v.keys = append(v.keys, key)
	}
	v.fields[key] = to
}

func (v *value) plain() any {
	switch {
	case v.isList:
		out := []any{}
		for _, item := range v.list {
			out = append(out, item.plain())
		}
		return out
	case v.fields != nil:
		out := map[string]any{}
		for key, field := range v.fields {
			out[key] = field.plain()
		}
		return out
	}
	return v.scalar
}

// differences are the paths at which two values differ. A list differs as a
// whole, and a mapping when it is emptied.
func differences(a, b *value, path string) []string {
	if a == nil || b == nil || a.isList || b.isList || len(a.keys) == 0 || len(b.keys) == 0 {
		if a != nil && b != nil && reflect.DeepEqual(a.plain(), b.plain()) {
			return nil
		}
		return []string{path}
	}
	var out []string
	for _, key := range slices.Concat(a.keys, b.keys) {
		out = append(out, differences(a.fields[key], b.fields[key], child(path, key))...)
	}
	return out
}

// author writes documents as people may.
type author struct{ *rand.Rand }

func (a author) chance(percent int) bool { return a.IntN(100) < percent }

func pick[T any](a author, from ...T) T { return from[a.IntN(len(from))] }

// words are texts that YAML takes for something else, or that need care.
var words = []string{
	"plain", "two words", "yes", "No", "1", "1.5", "0x10", "null", "~", "true", "a: b", "a #b", "# c", "it's", `say "hi"`, " lead", "trail ", "",
	"- x", "{x}", "[y", "*a", "&b", "!t", "%p", "@x", "`y`", "a,b", "a, b", "x]", "日本語 🙂", "tab\there", "multi\nline\n", "multi\nline", "a\n\nb\n\n", "\nfirst",
	"  deep\nless", "2001-01-01", "<<", "=", "?", "? x", "|", ">", "-", ":", "x:", "a\u2028b", "a\u0085b", "\x7f", "\\", `\n`, "---", "...", "a\r\nb", "\ufeff",
}

func (a author) text() *value {
	if a.chance(50) {
		return &value{scalar: fmt.Sprintf("w%d", a.IntN(6))}
	}
	return &value{scalar: pick(a, words...)}
}

func (a author) list(most int, item func() *value) *value {
	v := &value{isList: true}
	for range a.IntN(most + 1) {
		v.list = append(v.list, item())
	}
	return v
}

// session is a random valid one called a.
func (a author) session() *value {
	doc, meta, sp := &value{}, &value{}, &value{}
	doc.set("apiVersion", &value{scalar: spec.GroupVersion.String()})
	doc.set("kind", &value{scalar: spec.KindSession})
	meta.set("name", &value{scalar: "a"})
	for _, key := range []string{"labels", "annotations"} {
		if a.chance(60) {
			m := &value{fields: map[string]*value{}}
			for range a.IntN(4) {
				v := a.text()
				if key == "labels" {
					v = &value{scalar: pick(a, "x", "y", "1", "yes", "")}
				}
				m.set(fmt.Sprintf("k%d", a.IntN(5)), v)
			}
			meta.set(key, m)
		}
	}
	workspace := &value{}
	workspace.set("directory", &value{scalar: pick(a, "/tmp", "~/src", "$HOME/x y", "/it's", "/a: b", "/日本")})
	optional := func(on *value, key string, v *value) {
		if a.chance(40) {
			on.set(key, v)
		}
	}
	optional(workspace, "type", &value{scalar: pick(a, "Directory", "DirectoryOrCreate")})
	sp.set("workspace", workspace)
	sp.set("client", a.client(optional))
	optional(sp, "provisioningPolicy", &value{scalar: pick(a, "Eager", "OnDemand")})
	optional(sp, "initialPrompt", a.prompt())
	optional(sp, "restartPolicy", &value{scalar: pick(a, "Always", "Never")})
	optional(sp, "suspend", &value{scalar: a.chance(50)})
	optional(sp, "startupTimeoutSeconds", &value{scalar: 1 + a.IntN(9)})
	terminal := &value{}
	terminal.set("columns", &value{scalar: 80 + a.IntN(3)})
	optional(terminal, "rows", &value{scalar: 24})
	optional(sp, "terminal", terminal)
	doc.set("metadata", meta)
	doc.set("spec", sp)
	return a.shuffled(doc)
}

// prompt is a text that can be sent: the longer, the more of it is on lines of its own.
func (a author) prompt() *value {
	for {
		text := ""
		for range 1 + a.IntN(4) {
			text += pick(a, words...) + pick(a, "", "\n", "\n\n", "\n    ")
		}
		if _, err := spec.CheckPrompt(text); err == nil {
			return &value{scalar: text}
		}
	}
}

func (a author) client(optional func(*value, string, *value)) *value {
	client := &value{}
	command := a.list(2, a.text)
	command.list = append([]*value{{scalar: pick(a, "sleep", "/bin/sh", "npm run")}}, command.list...)
	client.set("command", command)
	optional(client, "args", a.list(4, a.text))
	used := map[string]bool{}
	optional(client, "env", a.list(4, func() *value {
		v, name := &value{}, fmt.Sprintf("V%d", len(used))
		for used[name] || a.chance(30) {
			name = fmt.Sprintf("V%d", a.IntN(50))
		}
		used[name] = true
		v.set("name", &value{scalar: name})
		if a.chance(30) {
			ref, path := &value{}, &value{}
			path.set("path", &value{scalar: "/k"})
			optional(path, "optional", &value{scalar: true})
			ref.set("fileRef", path)
			v.set("valueFrom", ref)
		} else {
			v.set("value", a.text())
		}
		return v
	}))
	optional(client, "shellMode", &value{scalar: pick(a, "None", "Login")})
	return client
}

// shuffled has the keys of all mappings in another order.
func (a author) shuffled(v *value) *value {
	a.Shuffle(len(v.keys), func(i, j int) { v.keys[i], v.keys[j] = v.keys[j], v.keys[i] })
	for _, field := range v.fields {
		a.shuffled(field)
	}
	for _, item := range v.list {
		a.shuffled(item)
	}
	return v
}

// mixed takes fields of two documents.
func (a author) mixed(x, y *value) *value {
	if x == nil || y == nil || x.fields == nil || y.fields == nil {
		if x != nil && y != nil && x.isList && y.isList && a.chance(50) {
			return a.mixedList(x, y)
		}
		return pick(a, x, y, x)
	}
	out := &value{fields: map[string]*value{}}
	for _, key := range slices.Concat(x.keys, y.keys) {
		if v := a.mixed(x.fields[key], y.fields[key]); v != nil {
			out.set(key, v)
		}
	}
	return out
}

func (a author) mixedList(x, y *value) *value {
	out := &value{isList: true}
	names := map[any]bool{}
	for _, item := range slices.Concat(x.list, y.list) {
		if name := item.fields["name"]; name != nil && names[name.scalar] || a.chance(30) && len(out.list) > 0 {
			continue
		} else if name != nil {
			names[name.scalar] = true
		}
		out.list = append(out.list, item)
	}
	return out
}

// page is a text under way, with the path that each line is about.
type page struct {
	author
	lines, paths []string
	// flow says that a line holds all of its path's value.
	flow     []bool
	step, in int
	comments bool
	n        int
}

func (p *page) line(path string, flow bool, format string, args ...any) {
	for i, line := range strings.Split(fmt.Sprintf(format, args...), "\n") {
		p.lines, p.paths, p.flow = append(p.lines, line), append(p.paths, path), append(p.flow, flow || i > 0)
	}
}

// remark is a comment, or none.
func (p *page) remark() string {
	if !p.comments || !p.chance(25) {
		return ""
	}
	p.n++
	return pick(p.author, " ", "  ") + fmt.Sprintf("# c%d, x: y", p.n)
}

func (p *page) above(indent int) {
	if r := strings.TrimSpace(p.remark()); r != "" {
		p.line("", false, "%s%s", strings.Repeat(" ", indent), r)
	}
	if p.comments && p.chance(10) {
		p.line("", false, "")
	}
}

func (p *page) scalar(v any, flow bool) string {
	s, isText := v.(string)
	if !isText {
		return fmt.Sprint(v)
	}
	if flow && !isPlain(s, false) {
		return quoted(s)
	}
	return styled(s, pick(p.author, 0, 0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle), flow)
}

func (p *page) inline(v *value) string {
	var parts []string
	gap := pick(p.author, ", ", ",  ", " , ")
	switch {
	case v.isList:
		for _, item := range v.list {
			parts = append(parts, p.inline(item))
		}
		return "[" + strings.Join(parts, gap) + "]"
	case v.fields != nil:
		for _, key := range v.keys {
			parts = append(parts, key+": "+p.inline(v.fields[key]))
		}
		return "{" + strings.Join(parts, gap) + "}"
	}
	return p.scalar(v.scalar, true)
}

func (p *page) mapping(v *value, path string, indent int, dash string) {
	for i, key := range v.keys {
		pad := strings.Repeat(" ", indent)
		if i > 0 || dash == "" {
			p.above(indent)
		} else {
			pad = pad[:len(pad)-2] + dash
		}
		field, at := v.fields[key], child(path, key)
		if dash != "" {
			at = path // a list is looked at as a whole
		}
		p.field(field, at, pad+key+":", indent)
	}
}

func (p *page) field(field *value, path, head string, indent int) {
	empty := field.isList && len(field.list) == 0 || field.fields != nil && len(field.keys) == 0
	text, isText := field.scalar.(string)
	lit, canBeLiteral := literal(text, indent+p.step)
	switch {
	case isText && canBeLiteral && p.chance(60):
		p.line(path, true, "%s %s%s", head, lit.inline, p.remark())
		p.line(path, true, "%s", strings.Join(lit.lines, "\n"))
	case !field.isList && field.fields == nil, empty, p.chance(20):
		p.line(path, true, "%s %s%s", head, p.inline(field), p.remark())
	case p.chance(15) && field.isList:
		p.line(path, true, "%s [%s", head, p.remark())
		for i, item := range field.list {
			comma := ","
			if i == len(field.list)-1 && p.chance(50) {
				comma = ""
			}
			p.line(path, true, "%s%s%s%s", strings.Repeat(" ", indent+p.step), p.inline(item), comma, p.remark())
		}
		p.line(path, true, "%s]%s", strings.Repeat(" ", indent), p.remark())
	case field.isList:
		p.line(path, false, "%s%s", head, p.remark())
		p.list(field, path, indent+p.in)
	default:
		p.line(path, false, "%s%s", head, p.remark())
		p.mapping(field, path, indent+p.step, "")
	}
}

func (p *page) list(v *value, path string, indent int) {
	for _, item := range v.list {
		p.above(indent)
		if len(item.keys) > 0 && p.chance(70) {
			p.mapping(item, path+"[]", indent+2, "- ")
			continue
		}
		p.line(path+"[]", true, "%s- %s%s", strings.Repeat(" ", indent), p.inline(item), p.remark())
	}
}

// write gives the document as a page.
func (a author) write(v *value, comments bool) *page {
	p := &page{author: a, step: pick(a, 2, 2, 4, 3), in: pick(a, 0, 2), comments: comments}
	if a.chance(8) {
		p.line("", true, "%s", p.inline(v))
		return p
	}
	p.mapping(v, "", 0, "")
	return p
}

func TestEveryEditLeavesEverythingElseAlone(t *testing.T) {
	seed := uint64(1)
	for n := range uint64(500) {
		a := author{rand.New(rand.NewPCG(seed, n))}
		have := a.session()
		want := a.mixed(have, a.session())
		requireEdit(t, a, fmt.Sprintf("seed %d, case %d", seed, n), have, want)
	}
}

func requireEdit(t *testing.T, a author, label string, have, want *value) {
	page := a.write(have, true)
	wanted := strings.Join(a.write(want, a.chance(50)).lines, "\n") + "\n"
	if a.chance(20) {
		wanted = page.inline(want) + "\n"
	}
	eol := pick(a, "\n", "\n", "\r\n", "\r")
	text := strings.Join(page.lines, eol)
	before := pick(a, "", "\uFEFF", other+"---\n", "# c\n---\n", "\uFEFF"+other+"...\n--- # mine\n", "bad: [\n---\n")
	after := pick(a, "", eol, eol+"...\n", eol+"---\n"+strings.Replace(other, "other", "third", 1), eol+"# end"+eol+"---\n# nothing\n---\nbad: [\n")
	file := before + text + after

	s := sourceOf(file)
	require.NoError(t, s.find(SessionRef("a")), "%s: %s", label, file)
	declaration := declarationOf(t, wanted)
	c, err := s.configure(declaration)
	require.NoError(t, err, "%s: %s\nwanted:\n%s", label, file, wanted)
	// An item may lose the field on the line of its dash.
	require.True(t, c.Replaced == "" || strings.HasPrefix(c.Replaced, "spec.client.env[] ("), "%s: %s: %s\nwanted:\n%s", label, c.Replaced, file, wanted)
	got := string(c.edited)
	show := fmt.Sprintf("%s:\n%s\nwanted:\n%s\ngot:\n%s", label, file, wanted, got)
	require.True(t, strings.HasPrefix(got, before), show)
	require.True(t, strings.HasSuffix(got, after), show)
	requireSays(t, s, got, declaration, show)

	changed := differences(have, want, "")
	require.Equal(t, len(changed) == 0, c.Outcome == Unchanged, show)
	rest := strings.Split(got[len(before):len(got)-len(after)], eol)
	for i, line := range page.lines {
		if page.touched(i, changed) {
			continue
		}
		at := slices.Index(rest, line)
		require.GreaterOrEqual(t, at, 0, "%s\nthis line is gone: %q", show, line)
		rest = rest[at+1:]
	}
	requireVerbs(t, file, before, after)
}

func requireSays(t *testing.T, s *source, got string, want Declaration, show string) {
	after := sourceOf(got)
	require.NoError(t, after.find(SessionRef("a")), show)
	require.Equal(t, want.Session, after.decoded.Items[after.item].Session, show)
	again, err := after.configure(want)
	require.NoError(t, err, show)
	require.Equal(t, Unchanged, again.Outcome, show)
	require.Len(t, after.decoded.Items, len(s.decoded.Items), show)
}

// touched tells whether a line may change: it holds a value that differs, or is
// inside one.
func (p *page) touched(i int, changed []string) bool {
	return slices.ContainsFunc(changed, func(path string) bool {
		inside := p.paths[i] == path || strings.HasPrefix(p.paths[i], path+".") || strings.HasPrefix(p.paths[i], path+"[")
		holds := p.flow[i] && (p.paths[i] == "" || strings.HasPrefix(path, p.paths[i]+"."))
		return p.paths[i] != "" && inside || holds
	}) || p.insideRemoved(i, changed)
}

// insideRemoved tells a comment that stands among the lines of a value that may
// change.
func (p *page) insideRemoved(i int, changed []string) bool {
	if p.paths[i] != "" || p.flow[i] {
		return false
	}
	before, after := "", ""
	for j := i - 1; j >= 0 && before == ""; j-- {
		before = p.paths[j]
	}
	for j := i + 1; j < len(p.paths) && after == ""; j++ {
		after = p.paths[j]
	}
	return slices.ContainsFunc(changed, func(path string) bool {
		in := func(line string) bool {
			return line == path || strings.HasPrefix(line, path+".") || strings.HasPrefix(line, path+"[")
		}
		return in(before) && in(after)
	})
}

// requireVerbs checks suspend and delete on the same file.
func requireVerbs(t *testing.T, file, before, after string) {
	s := sourceOf(file)
	require.NoError(t, s.find(SessionRef("a")))
	for _, suspend := range []bool{true, false} {
		edited, err := s.suspended("a", suspend)
		require.NoError(t, err, file)
		requireOneChange(t, file, string(edited))
	}
	if len(s.decoded.Items) > 1 {
		edited, err := s.without()
		require.NoError(t, err, file)
		head, _, _ := strings.Cut(before, "---")
		require.True(t, strings.HasPrefix(string(edited), head), "%q became %q", file, edited)
		_, tail, found := strings.Cut(after, "---")
		require.True(t, !found || strings.HasSuffix(string(edited), "---"+tail), "%q became %q", file, edited)
	}
}
