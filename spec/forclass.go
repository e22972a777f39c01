// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The fields of a Session that only its class can judge, and those that stand for what
// the settings lay under it.
var fieldsForClass = []string{
	"spec.clientClassName", "spec.client.command", "spec.client.args", "spec.client.startArgs", "spec.conversation.id", "spec.initialPrompt",
	directoryPath, "spec",
}

// ValidateForClass says what in a valid Session its class does not permit: a command
// beside that of the class, none where the class has none, a conversation for a client
// without, an initial prompt that is too long for it, and arguments that name another
// conversation than the class does.
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
	if err := CheckPromptFor(&class.Spec, s.Spec.InitialPrompt); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec", "initialPrompt"), field.OmitValueType{}, err.Error()))
	}
	client := field.NewPath("spec", "client")
	errs = append(errs, namesConversation(client.Child("args"), s.Spec.Client.Args, class)...)
	return append(errs, namesConversation(client.Child("startArgs"), s.Spec.Client.StartArgs, class)...)
}

// namesConversation refuses the flags by which the class itself tells its client which
// conversation it is to have: with a second one the client would not start at all, or
// with a conversation that muxlet knows nothing of.
func namesConversation(path *field.Path, words []string, class *ClientClass) field.ErrorList {
	for _, command := range [][]string{class.Spec.Start.Command, class.Spec.Resume.Command} {
		for i, word := range command {
			if i == 0 || !strings.Contains(word, "$("+VarConversationID+")") || !strings.HasPrefix(command[i-1], "-") {
				continue
			}
			flag := command[i-1]
			if slices.ContainsFunc(words, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") }) {
				return field.ErrorList{field.Invalid(path, field.OmitValueType{},
					fmt.Sprintf("%s is for class %s to say; to take up another conversation, name it in spec.conversation.id", flag, class.Name))}
			}
		}
	}
	return nil
}

// ProblemsForClass gives the same with the places in the document.
func (d *Document) ProblemsForClass(class *ClientClass) []Problem {
	return d.placed(ValidateForClass(d.Session, class))
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
