// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"
)

func TestWaysToTakeATurnAreAccepted(t *testing.T) {
	for name, line := range map[string]string{
		"nothing said":       "{}",
		"paste":              "{method: Paste, settleMilliseconds: 10000, key: M-Enter, confirm: Screen, whileWorking: Queue}",
		"no wait":            "{settleMilliseconds: 0}",
		"composer":           `{composer: {pattern: '^> (?P<text>.*)$'}}`,
		"what is pasted":     `{composer: {pattern: '^> (?P<text>.*)$', pasted: '\[Pasted'}}`,
		"queue":              "{method: Queue, command: [agent, queue, $(CONVERSATION_ID)]}",
		"queue with a word":  "{method: Queue, command: [agent, queue, $(PROMPT)]}",
		"argument":           "{method: Argument}",
		"named argument":     `{method: Argument, arguments: [--prompt, $(PROMPT)]}`,
		"argument in a word": `{method: Argument, arguments: ["--prompt=$(PROMPT)"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			head := strings.Replace(head, KindSession, KindClientClass, 1)
			assert.Empty(t, texts(DecodeFile("f", []byte(head+"spec: {start: {command: [agent]}, submit: "+line+"}\n"))))
		})
	}
}

func TestWaysToTakeATurnThatCannotWorkAreRefused(t *testing.T) {
	argument := ClassSubmit{Method: SubmitArgument}
	for name, c := range map[string]struct {
		change func(*ClassSubmit)
		want   string
	}{
		"method":              {func(s *ClassSubmit) { s.Method = "paste" }, `spec.submit.method: "paste" is not one of Paste, Queue, Argument (did you mean "Paste"?)`},
		"settle":              {func(s *ClassSubmit) { s.SettleMilliseconds = ptr.To[int32](10_001) }, "spec.submit.settleMilliseconds: 10001 is not between 0 and 10000"},
		"negative settle":     {func(s *ClassSubmit) { s.SettleMilliseconds = ptr.To[int32](-1) }, "spec.submit.settleMilliseconds: -1 is not between 0 and 10000"},
		"key":                 {func(s *ClassSubmit) { s.Key = "C-x Enter" }, `spec.submit.key: "C-x Enter" is no key; write it as tmux does, such as C-c, Escape or Enter`},
		"long key":            {func(s *ClassSubmit) { s.Key = strings.Repeat("x", 33) }, `spec.submit.key: "` + strings.Repeat("x", 33) + `" is no key; write it as tmux does, such as C-c, Escape or Enter`},
		"confirm":             {func(s *ClassSubmit) { s.Confirm = "Reports" }, `spec.submit.confirm: "Reports" is not one of Report, Screen (did you mean "Report"?)`},
		"report of nobody":    {func(s *ClassSubmit) { s.Confirm = ConfirmReport }, "spec.submit.confirm: no report would ever come while spec.reports is None, and each turn end Uncertain; make it Screen, or leave it out"},
		"while working":       {func(s *ClassSubmit) { s.WhileWorking = "queue" }, `spec.submit.whileWorking: "queue" is not one of Wait, Queue (did you mean "Queue"?)`},
		"composer":            {func(s *ClassSubmit) { s.Composer.Pattern = "(" }, "spec.submit.composer.pattern: is no regular expression (RE2): missing closing ): `(`"},
		"composer's group":    {func(s *ClassSubmit) { s.Composer.Pattern = "^> (.*)$" }, "spec.submit.composer.pattern: without a group (?P<text>…) in it, it does not say what stands in the input line"},
		"composer everywhere": {func(s *ClassSubmit) { s.Composer.Pattern = "(?P<text>.*)" }, `spec.submit.composer.pattern: "(?P<text>.*)" matches an empty screen, and so says nothing`},
		"pasted":              {func(s *ClassSubmit) { s.Composer = ClassComposer{Pattern: "^> (?P<text>.*)$", Pasted: "[Pasted"} }, "spec.submit.composer.pasted: is no regular expression (RE2): missing closing ]: `[Pasted`"},
		"pasted anything":     {func(s *ClassSubmit) { s.Composer = ClassComposer{Pattern: "^> (?P<text>.*)$", Pasted: ".*"} }, `spec.submit.composer.pasted: ".*" matches an empty screen, and so says nothing`},
		"commands":            {func(s *ClassSubmit) { s.Composer.Pattern, s.Composer.Commands = "(?P<text>.)", "(" }, "spec.submit.composer.commands: is no regular expression (RE2): missing closing ): `(`"},
		"commands of no line": {func(s *ClassSubmit) { s.Composer.Commands = "/" }, "spec.submit.composer.commands: without composer.pattern it is not known when one has left the input line"},
		"continues":           {func(s *ClassSubmit) { s.Composer.Continues = "(" }, "spec.submit.composer.continues: is no regular expression (RE2): missing closing ): `(`"},
		"pasted nowhere":      {func(s *ClassSubmit) { s.Composer.Pasted = "Pasted" }, "spec.submit.composer.pasted: it is looked for in what composer.pattern finds, which is not given"},
		"queue of nobody":     {func(s *ClassSubmit) { s.Method = SubmitQueue }, "spec.submit.command: is required: it puts the prompt, which it reads from its standard input, into the client's own queue, such as [agent, queue, $(CONVERSATION_ID)]"},
		"queue's program":     {func(s *ClassSubmit) { s.Method, s.Command = SubmitQueue, []string{""} }, "spec.submit.command[0]: the program's name is empty"},
		"command of a paste":  {func(s *ClassSubmit) { s.Command = []string{"agent"} }, "spec.submit.command: it is for method Queue alone"},
		"arguments pasted":    {func(s *ClassSubmit) { s.Arguments = []string{"$(PROMPT)"} }, "spec.submit.arguments: they are for method Argument alone"},
		"no prompt":           {func(s *ClassSubmit) { *s = argument; s.Arguments = []string{"-p"} }, "spec.submit.arguments: without $(PROMPT) in them the client is not told the prompt"},
		"escaped prompt":      {func(s *ClassSubmit) { *s = argument; s.Arguments = []string{"$$(PROMPT)"} }, "spec.submit.arguments: without $(PROMPT) in them the client is not told the prompt"},
		"NUL in an argument":  {func(s *ClassSubmit) { *s = argument; s.Arguments = []string{"$(PROMPT)", "\x00"} }, "spec.submit.arguments[1]: a word cannot have a NUL byte"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &ClientClass{Spec: ClientClassSpec{Start: ClassCommand{Command: []string{"agent"}}}}
			class.Name = "agent"
			c.change(&class.Spec.Submit)
			SetClassDefaults(&class.Spec)
			var got []string
			for _, p := range new(Tree).Problems(ValidateClass(class)) {
				got = append(got, strings.TrimPrefix(p.Error(), ": "))
			}
			assert.Equal(t, []string{c.want}, got)
		})
	}
}
