// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// SessionDefaults are what the settings say of each session that does not say it
// itself. They are merged under a document's spec field by field: of a scalar the
// document's own counts, objects are merged field by field, the variables of client.env
// by their names, and any other list is the document's own where it gives one, also an
// empty one. What is meant for one kind of client (client.args, client.startArgs and
// initialPrompt) goes to sessions of the class that the defaults are about, and a session
// that gives a client.command takes no class from them. The zero pointer merges nothing.
//
// +kubebuilder:object:generate=false
type SessionDefaults struct {
	// given is what the settings give, and nothing of what they leave out.
	given map[string]any
	// text is given as JSON, by which two are compared.
	text []byte
	// class that they are about, and what a session has that says nothing.
	class string
}

// NewSessionDefaults makes them of a valid spec; see ValidateSessionDefaults. className
// is the class of a session of which neither it nor they name one. They are nil when the
// spec gives nothing.
func NewSessionDefaults(s *SessionSpec, className string) *SessionDefaults {
	given := GivenFields(s)
	if len(given) == 0 {
		return nil
	}
	return &SessionDefaults{given: given, text: encoded(given), class: cmp.Or(s.ClientClassName, className, ClassClaude)}
}

// Same says whether two merge the same.
func (d *SessionDefaults) Same(other *SessionDefaults) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.class == other.class && bytes.Equal(d.text, other.text)
}

// GivenFields is a spec as JSON without what is empty in it, as a person writes it.
func GivenFields(s *SessionSpec) map[string]any {
	fields, err := objectOf(encoded(s))
	if err != nil {
		panic(err) // it was encoded a moment ago
	}
	prune(fields)
	return fields
}

// encoded is JSON of a spec or of its fields.
func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("spec: a spec cannot be encoded: " + err.Error()) // its types have no such values
	}
	return data
}

func objectOf(data []byte) (map[string]any, error) {
	fields := map[string]any{}
	if len(data) == 0 {
		return fields, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return nil, fmt.Errorf("decode a spec: %w", err)
	}
	return fields, nil
}

func prune(fields map[string]any) {
	maps.DeleteFunc(fields, func(_ string, value any) bool {
		if inner, ok := value.(map[string]any); ok {
			prune(inner)
			return len(inner) == 0
		}
		list, isList := value.([]any)
		return value == nil || value == "" || value == false || isList && len(list) == 0
	})
}

// forOneClass are the fields that are words of one kind of client.
var forOneClass = [][]string{{"client", "args"}, {"client", "startArgs"}, {"initialPrompt"}}

// under gives what a document's spec says with the defaults below it.
func (d *SessionDefaults) under(own map[string]any) map[string]any {
	base := d.given
	client, _ := own["client"].(map[string]any)
	command, _ := client["command"].([]any)
	class, named := own["clientClassName"].(string)
	if !named && len(command) > 0 {
		class = ClassExec
		base = without(base, []string{"clientClassName"})
	}
	if cmp.Or(class, d.class) != d.class {
		for _, path := range forOneClass {
			base = without(base, path)
		}
	}
	return merge(base, own, "")
}

// without is a copy that lacks a field.
func without(fields map[string]any, path []string) map[string]any {
	out := maps.Clone(fields)
	if len(path) == 1 {
		delete(out, path[0])
	} else if inner, ok := out[path[0]].(map[string]any); ok {
		out[path[0]] = without(inner, path[1:])
	}
	return out
}

// merge lays fields over others. Neither is changed.
func merge(below, above map[string]any, path string) map[string]any {
	out := maps.Clone(below)
	for name, value := range above {
		inner, isObject := value.(map[string]any)
		base, onObject := out[name].(map[string]any)
		list, isList := value.([]any)
		baseList, onList := out[name].([]any)
		switch at := path + name; {
		case isObject && onObject:
			out[name] = merge(base, inner, at+".")
		case isList && onList && at == "client.env":
			out[name] = mergeByName(baseList, list)
		default:
			out[name] = value
		}
	}
	return out
}

// mergeByName has the items of below whose names are not above, and then those above.
func mergeByName(below, above []any) []any {
	var out []any
	for _, item := range below {
		if !slices.ContainsFunc(above, func(a any) bool { return nameIn(a) == nameIn(item) }) {
			out = append(out, item)
		}
	}
	return append(out, above...)
}

func nameIn(item any) any {
	fields, _ := item.(map[string]any)
	return fields["name"]
}

// ValidateSessionDefaults says what is wrong with the defaults of sessions, at their
// place in the settings.
func ValidateSessionDefaults(s *SessionSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(given bool, why string, path ...string) {
		if given {
			errs = append(errs, field.Invalid(at.Child(path[0], path[1:]...), field.OmitValueType{}, why))
		}
	}
	refuse(len(s.Client.Command) > 0, "a command is one session's own; give all of them a client class with clientClassName", "client", "command")
	refuse(s.Conversation.ID != "", "a conversation belongs to one session; name it in that session's document", "conversation", "id")
	refuse(s.Suspend, `sessions are suspended one by one; "muxlet suspend --all" does it for all that are there`, "suspend")
	whole := s.DeepCopy()
	whole.Client.Command, whole.Conversation.ID = nil, ""
	if whole.Workspace.Directory == "" {
		whole.Workspace.Directory = "/"
	}
	SetDefaults(whole)
	for _, err := range validateSpec(whole, field.NewPath("spec")) {
		err.Field = at.String() + strings.TrimPrefix(err.Field, "spec")
		errs = append(errs, err)
	}
	return errs
}

// said is what a document says of a session, whatever the settings give.
type said struct {
	meta metav1.ObjectMeta
	// spec as JSON, with what it says to be empty.
	spec []byte
	// problems that it has by itself.
	problems []Problem
	// sound says that nothing is wrong with it but what settings can mend.
	sound bool
	// merged says that Session has defaults below it.
	merged bool
}

// directoryPath is the field that a session needs and that settings can give.
const directoryPath = "spec.workspace.directory"

// saying keeps what a decoded session says.
func saying(tree *Tree, s *Session, problems []Problem) *said {
	out := &said{meta: s.ObjectMeta, problems: problems}
	out.sound = !slices.ContainsFunc(problems, func(p Problem) bool { return !mendable(p) })
	if _, value, missing := tree.find("spec"); value != nil && missing == 0 {
		out.spec = encoded(plain(value))
	}
	return out
}

// mendable tells the problem that settings can mend.
func mendable(p Problem) bool {
	return p.Path == directoryPath && strings.HasPrefix(p.Message, "is required")
}

// DeclaredSession is what the document says by itself, with the defaults that every
// session has, also when it lacks what the settings may give: its directory. It is nil
// when anything else is wrong.
func (d *Document) DeclaredSession() *Session {
	switch {
	case d.said == nil, d.Session != nil && !d.said.merged:
		return d.Session
	case !d.said.sound:
		return nil
	}
	own, err := objectOf(d.said.spec)
	if err != nil {
		return nil
	}
	s, err := d.said.session(own)
	if err != nil {
		return nil
	}
	return s
}

// Declared is DeclaredSession, or the class; nil for a document that is not valid.
func (d *Document) Declared() metav1.Object {
	if d.Class != nil {
		return d.Class
	}
	if s := d.DeclaredSession(); s != nil {
		return s
	}
	return nil
}

// session of the fields of a spec.
func (s *said) session(fields map[string]any) (*Session, error) {
	apiVersion, kind := GroupVersion.WithKind(KindSession).ToAPIVersionAndKind()
	out := &Session{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: *s.meta.DeepCopy()}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded(fields), &out.Spec); err != nil {
		return nil, fmt.Errorf("decode a spec: %w", err)
	}
	SetDefaults(&out.Spec)
	out.Namespace = Namespace
	return out, nil
}

// Under gives the document as it is with the defaults of the settings, instead of
// those under which it was before. It is another one only where they matter.
func (d Document) Under(defaults *SessionDefaults) Document {
	if d.said == nil || defaults == nil && !d.said.merged {
		return d
	}
	said := *d.said
	d.said = &said
	said.merged = defaults != nil
	d.Session, d.Problems = nil, said.problems
	if !said.sound {
		d.Problems = defaults.mend(said.problems)
		return d
	}
	own, err := objectOf(said.spec)
	if err == nil && defaults != nil {
		own = defaults.under(own)
	}
	var s *Session
	if err == nil {
		s, err = said.session(own)
	}
	if err != nil {
		d.Problems = []Problem{{Position: d.Position, Message: "this cannot be merged with sessionDefaults: " + err.Error()}}
		return d
	}
	if d.Problems = d.placed(Validate(s)); len(d.Problems) == 0 {
		d.Session, d.Problems = s, nil
	}
	return d
}

// mend leaves out the problems that a document does not have with them.
func (d *SessionDefaults) mend(problems []Problem) []Problem {
	if d == nil || !has(d.given, strings.Split(directoryPath, ".")[1:]) {
		return problems
	}
	return slices.DeleteFunc(slices.Clone(problems), mendable)
}

// placed gives errors about a spec that was merged their places in the document, and
// says where the word is from that the document does not have.
func (d *Document) placed(errs field.ErrorList) []Problem {
	problems := new(Tree).Problems(errs)
	for i, p := range problems {
		problems[i].Position = d.place(p.Path)
		if !strings.HasPrefix(p.Message, "is required") && !d.says(p.Path) {
			problems[i].Message += "; it comes from sessionDefaults in the settings"
		}
	}
	return inOrder(problems)
}

// says tells that a field is the document's own, and not laid under it.
func (d *Document) says(path string) bool {
	if d.said == nil || !d.said.merged {
		return true
	}
	own, err := objectOf(d.said.spec)
	return err != nil || has(own, names(path))
}

// names are the fields on the way to one, without spec.
func names(path string) []string {
	var out []string
	for _, s := range segmentsOf(path) {
		if s.index >= 0 {
			break
		}
		out = append(out, s.name)
	}
	if len(out) > 0 && out[0] == "spec" {
		out = out[1:]
	}
	return out
}

func has(fields map[string]any, path []string) bool {
	for i, name := range path {
		value, found := fields[name]
		if !found || i == len(path)-1 {
			return found
		}
		fields, _ = value.(map[string]any)
	}
	return len(path) == 0
}

// place of a field, or of the nearest one around it of which the place is kept.
func (d *Document) place(path string) Position {
	for path != "" {
		if at, known := d.places[path]; known {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.Position
}

// Under gives the documents as they are with the defaults of the settings.
func (d Documents) Under(defaults *SessionDefaults) Documents {
	d.Items = slices.Clone(d.Items)
	for i := range d.Items {
		d.Items[i] = d.Items[i].Under(defaults)
	}
	return d
}
