// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateSubmit(s *ClassSubmit, reports ReportsType, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("method"), s.Method, SubmitPaste, SubmitQueue, SubmitArgument)
	errs = append(errs, between(path.Child("settleMilliseconds"), s.SettleMilliseconds, 0, 10_000)...)
	errs = append(errs, validateKey(s.Key, path.Child("key"))...)
	confirm := path.Child("confirm")
	errs = append(errs, oneOf(confirm, s.Confirm, ConfirmReport, ConfirmScreen)...)
	if s.Confirm == ConfirmReport && reports == ReportsNone {
		errs = append(errs, field.Invalid(confirm, field.OmitValueType{},
			"no report would ever come while spec.reports is None, and each turn end Uncertain; make it Screen, or leave it out"))
	}
	errs = append(errs, oneOf(path.Child("whileWorking"), s.WhileWorking, WhileWorkingWait, WhileWorkingQueue)...)
	errs = append(errs, validateComposer(&s.Composer, path.Child("composer"))...)
	errs = append(errs, validateQueueCommand(s, path.Child("command"))...)
	return append(errs, validatePromptArguments(s, path.Child("arguments"))...)
}

func validateComposer(c *ClassComposer, path *field.Path) field.ErrorList {
	pattern, pasted := path.Child("pattern"), path.Child("pasted")
	errs := validatePattern(pattern, c.Pattern)
	if compiled, err := CompilePattern(c.Pattern); c.Pattern != "" && err == nil && compiled.SubexpIndex(GroupText) < 0 {
		errs = append(errs, field.Invalid(pattern, c.Pattern,
			fmt.Sprintf("without a group (?P<%s>…) in it, it does not say what stands in the input line", GroupText)))
	}
	if c.Pattern == "" && c.Pasted != "" {
		errs = append(errs, field.Invalid(pasted, c.Pasted, "it is looked for in what composer.pattern finds, which is not given"))
	}
	errs = append(errs, validatePattern(pasted, c.Pasted)...)
	commands := path.Child("commands")
	if c.Pattern == "" && c.Commands != "" {
		errs = append(errs, field.Invalid(commands, c.Commands, "without composer.pattern it is not known when one has left the input line"))
	}
	errs = append(errs, validatePattern(commands, c.Commands)...)
	return append(errs, validatePattern(path.Child("continues"), c.Continues)...)
}

func validateQueueCommand(s *ClassSubmit, at *field.Path) field.ErrorList {
	errs := validateArgv(s.Command, at)
	switch queue := s.Method == SubmitQueue; {
	case queue && len(s.Command) == 0:
		errs = append(errs, field.Required(at, "it puts the prompt, which it reads from its standard input, into the client's own queue, such as [agent, queue, $(CONVERSATION_ID)]"))
	case !queue && len(s.Command) > 0:
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("it is for method %s alone", SubmitQueue)))
	}
	return errs
}

func validatePromptArguments(s *ClassSubmit, at *field.Path) field.ErrorList {
	errs := validateWords(s.Arguments, at)
	switch argument := s.Method == SubmitArgument; {
	case !argument && len(s.Arguments) > 0:
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("they are for method %s alone", SubmitArgument)))
	case argument && !refersTo(s.Arguments, VarPrompt):
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("without $(%s) in them the client is not told the prompt", VarPrompt)))
	}
	return errs
}

// validatePromptPlaces keeps $(PROMPT) where there is a prompt: in the start command,
// which is for clients without a turn too, it would reach the client as it is written.
func validatePromptPlaces(c *ClientClassSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(at *field.Path, words ...string) {
		if refersTo(words, VarPrompt) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{},
				fmt.Sprintf("$(%s) is not known there; a client that begins with a prompt is given it by submit: {method: %s, arguments: [$(%[1]s)]}", VarPrompt, SubmitArgument)))
		}
	}
	refuse(path.Child("start", "command"), c.Start.Command...)
	refuse(path.Child("resume", "command"), c.Resume.Command...)
	refuse(path.Child("configDirectory", "default"), c.ConfigDirectory.Default)
	for i, e := range c.Env {
		refuse(path.Child("env").Index(i).Child("value"), e.Value)
	}
	return errs
}
