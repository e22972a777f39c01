// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The fields of a Session that only its class can judge.
var fieldsForClass = []string{"spec.clientClassName", "spec.client.command", "spec.conversation.id"}

// ValidateForClass says what in a valid Session its class does not permit: a command
// beside that of the class, none where the class has none, and a conversation for a
// client without.
func ValidateForClass(s *Session, class *ClientClass) field.ErrorList {
	var errs field.ErrorList
	command := field.NewPath("spec", "client", "command")
	own := len(class.Spec.Start.Command) > 0
	switch given := len(s.Spec.Client.Command) > 0; {
	case own && given:
		errs = append(errs, field.Invalid(command, field.OmitValueType{},
			fmt.Sprintf("class %s has a command of its own; append to it with client.args, or use clientClassName: %s", class.Name, ClassExec)))
	case !own && !given:
		errs = append(errs, field.Required(command,
			fmt.Sprintf("class %s runs what the session says, such as [npm, run, dev]", class.Name)))
	}
	if s.Spec.Conversation.ID != "" && class.Spec.Conversation.Identity == IdentityNone {
		errs = append(errs, field.Invalid(field.NewPath("spec", "conversation", "id"), s.Spec.Conversation.ID,
			fmt.Sprintf("a client of class %s has no conversation", class.Name)))
	}
	return errs
}

// ProblemsForClass gives the same with the places in the document.
func (d *Document) ProblemsForClass(class *ClientClass) []Problem {
	problems := new(Tree).Problems(ValidateForClass(d.Session, class))
	for i := range problems {
		problems[i].Position = d.places[problems[i].Path]
	}
	return inOrder(problems)
}

// ClassPlace is where the document names its class.
func (d *Document) ClassPlace() Position { return d.places[fieldsForClass[0]] }

func (t *Tree) placesForClass() map[string]Position {
	places := make(map[string]Position, len(fieldsForClass))
	for _, path := range fieldsForClass {
		places[path] = t.Position(path)
	}
	return places
}
