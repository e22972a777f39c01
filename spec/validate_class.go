// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// ValidateClass says what is wrong with a defaulted ClientClass.
func ValidateClass(c *ClientClass) field.ErrorList {
	at := field.NewPath("metadata")
	errs := validateMetadata(&c.ObjectMeta, at, "client class", "gemini")
	if c.Namespace != "" {
		errs = append(errs, field.Invalid(at.Child("namespace"), c.Namespace, "a client class belongs to no namespace; leave it out"))
	}
	return append(errs, validateClassSpec(&c.Spec, field.NewPath("spec"))...)
}

func validateClassSpec(c *ClientClassSpec, path *field.Path) field.ErrorList {
	errs := validateCommands(c, path)
	errs = append(errs, validateConfigDirectory(&c.ConfigDirectory, path.Child("configDirectory"))...)
	errs = append(errs, validateIdentity(c, path.Child("conversation"))...)
	errs = append(errs, oneOf(path.Child("reports"), c.Reports, ReportsClaude, ReportsCodex, ReportsNone)...)
	errs = append(errs, validatePattern(path.Child("ready", "pattern"), c.Ready.Pattern)...)
	errs = append(errs, between(path.Child("ready", "timeoutSeconds"), c.Ready.TimeoutSeconds, 1, 3600)...)
	errs = append(errs, validatePattern(path.Child("working", "pattern"), c.Working.Pattern)...)
	for i, rule := range c.Attention {
		errs = append(errs, validateRule(path.Child("attention").Index(i), rule.Pattern, rule.Reason)...)
	}
	for i, rule := range c.Failures {
		at := path.Child("failures").Index(i)
		errs = append(errs, validateRule(at, rule.Pattern, rule.Reason)...)
		errs = append(errs, oneOf(at.Child("retry"), rule.Retry, RetryAgain, RetryHold)...)
	}
	errs = append(errs, validateEngine(c.Engine.Executable, path.Child("engine", "executable"))...)
	errs = append(errs, validateSubmit(&c.Submit, c.Reports, path.Child("submit"))...)
	errs = append(errs, validatePromptPlaces(c, path)...)
	errs = append(errs, validateStop(&c.Stop, path.Child("stop"))...)
	errs = append(errs, validateCredentials(c.Credentials.Env, path.Child("credentials", "env"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	return append(errs, validateUnsetEnv(c.UnsetEnv, path.Child("unsetEnv"))...)
}

// validateCommands checks both argv, and that the conversation's id is in them
// where the client could not know it otherwise.
func validateCommands(c *ClientClassSpec, path *field.Path) field.ErrorList {
	start, resume := path.Child("start", "command"), path.Child("resume", "command")
	errs := validateArgv(c.Start.Command, start)
	errs = append(errs, validateArgv(c.Resume.Command, resume)...)
	const needsID = "without $(CONVERSATION_ID) in it the client does not know which conversation is meant"
	switch identity := c.Conversation.Identity; {
	case identity == IdentityNone && len(c.Resume.Command) > 0:
		errs = append(errs, field.Invalid(resume, field.OmitValueType{},
			"there is nothing to resume while conversation.identity is None; make that Assigned or Reported, or remove it"))
	case identity == IdentityNone:
	case len(c.Resume.Command) == 0:
		errs = append(errs, field.Required(resume, "it brings a client back with its conversation, such as [gemini, --resume, $(CONVERSATION_ID)]"))
	case !refersTo(c.Resume.Command, VarConversationID):
		errs = append(errs, field.Invalid(resume, field.OmitValueType{}, needsID))
	}
	if c.Conversation.Identity == IdentityAssigned {
		switch {
		case len(c.Start.Command) == 0:
			errs = append(errs, field.Required(start, "a client whose conversation.identity is Assigned is told its id by it, such as [gemini, --session-id, $(CONVERSATION_ID)]"))
		case !refersTo(c.Start.Command, VarConversationID):
			errs = append(errs, field.Invalid(start, field.OmitValueType{}, needsID))
		}
	}
	errs = append(errs, validateArgvBytes(c.Start.Command, c.Env, start)...)
	return append(errs, validateArgvBytes(c.Resume.Command, c.Env, resume)...)
}

func validateArgvBytes(command []string, env []EnvVar, at *field.Path) field.ErrorList {
	if total := bytesOf(env, command); total > maxArgvBytes {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{},
			fmt.Sprintf("command and env have %d bytes in all; the system takes at most %d", total, maxArgvBytes))}
	}
	return nil
}

// refersTo tells whether a word has $(name), not $$(name).
func refersTo(words []string, name string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(references(word), name) })
}

// references are the names of all $(NAME) in a text.
func references(text string) []string {
	var names []string
	Expand(text, func(name string) (string, bool) {
		names = append(names, name)
		return "", true
	})
	return names
}

func validateConfigDirectory(d *ClassDirectory, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d.Env != "" {
		errs = append(errs, validateEnvName(d.Env, path.Child("env"))...)
	}
	if d.Default != "" {
		errs = append(errs, validateExpanded(path.Child("default"), d.Default)...)
	}
	return errs
}

// inPlace is the beginning of a path that does not depend on where muxlet runs.
var inPlace = lazyregexp.New(`^(?:/|\$\([A-Za-z_][A-Za-z0-9_]*\))`)

// validateExpanded wants a path that is absolute once $(NAME) is expanded.
func validateExpanded(at *field.Path, text string) field.ErrorList {
	switch {
	case strings.ContainsRune(text, 0):
		return field.ErrorList{field.Invalid(at, text, "a path cannot have a NUL byte")}
	case inPlace.MatchString(text):
		return nil
	}
	home := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "~/"), "$HOME/"), "./")
	detail := fmt.Sprintf("%q is relative; it must begin with / or with a variable such as $(HOME)", text)
	return field.ErrorList{field.Invalid(at, text, suggest(detail, "$(HOME)/"+home))}
}

func validateIdentity(c *ClientClassSpec, path *field.Path) field.ErrorList {
	conversation := &c.Conversation
	errs := oneOf(path.Child("identity"), conversation.Identity, IdentityAssigned, IdentityReported, IdentityNone)
	errs = append(errs, validateTranscript(c, path.Child("transcript"))...)
	if conversation.Transcript == "" && conversation.TranscriptPattern != "" {
		errs = append(errs, field.Invalid(path.Child("transcriptPattern"), conversation.TranscriptPattern, "it is looked for in the transcript, which is not given"))
	}
	errs = append(errs, validatePattern(path.Child("transcriptPattern"), conversation.TranscriptPattern)...)
	return append(errs, validatePattern(path.Child("notFoundPattern"), conversation.NotFoundPattern)...)
}

// transcriptVariables are those that are known wherever evidence is looked for.
var transcriptVariables = []string{VarConversationID, VarConfigDirectory, VarHome, VarWorkspace, VarSessionName}

func validateTranscript(c *ClientClassSpec, at *field.Path) field.ErrorList {
	transcript := c.Conversation.Transcript
	if transcript == "" {
		return nil
	}
	errs := validateExpanded(at, transcript)
	invalid := func(format string, args ...any) {
		errs = append(errs, field.Invalid(at, transcript, fmt.Sprintf(format, args...)))
	}
	names := references(transcript)
	for _, name := range names {
		if !slices.Contains(transcriptVariables, name) {
			invalid("%s", suggest(fmt.Sprintf("$(%s) is not known there; use $(%s)", name, strings.Join(transcriptVariables, "), $(")),
				nearest(name, transcriptVariables)))
		}
	}
	if slices.Contains(names, VarConfigDirectory) && c.ConfigDirectory == (ClassDirectory{}) {
		invalid("$(%s) needs spec.configDirectory", VarConfigDirectory)
	}
	if c.Conversation.Identity != IdentityNone && !slices.Contains(names, VarConversationID) {
		invalid("without $(%s) in it the file of another conversation would be taken for evidence", VarConversationID)
	}
	if _, err := path.Match(transcript, ""); err != nil {
		invalid("%q is not a glob: a bracket is not closed", transcript)
	}
	return errs
}

// validatePattern wants an expression that says something: one that matches an
// empty screen would be true always.
func validatePattern(at *field.Path, pattern string) field.ErrorList {
	if pattern == "" {
		return nil
	}
	compiled, err := CompilePattern(pattern)
	switch {
	case err != nil:
		reason := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "error parsing regexp: "), "`(?m)", "`")
		return field.ErrorList{field.Invalid(at, pattern, "is no regular expression (RE2): "+reason)}
	case compiled.MatchString(""):
		return field.ErrorList{field.Invalid(at, pattern, fmt.Sprintf("%q matches an empty screen, and so says nothing", pattern))}
	}
	return nil
}

// camelCase is the form of a reason.
var camelCase = lazyregexp.New(`^[A-Z][A-Za-z0-9]{0,62}$`)

func validateRule(path *field.Path, pattern, reason string) field.ErrorList {
	errs := validatePattern(path.Child("pattern"), pattern)
	if pattern == "" {
		errs = append(errs, field.Required(path.Child("pattern"), "it is what the screen shows, a regular expression"))
	}
	at := path.Child("reason")
	switch {
	case reason == "":
		errs = append(errs, field.Required(at, "it is one word in CamelCase, such as TrustRequired"))
	case !camelCase.MatchString(reason):
		errs = append(errs, field.Invalid(at, reason, fmt.Sprintf("%q cannot be a reason: use one word in CamelCase of at most 63 letters and digits, such as TrustRequired", reason)))
	}
	return errs
}

// maxFileName is the longest name of a file that Linux and macOS know, in bytes.
const maxFileName = 255

func validateEngine(executable string, at *field.Path) field.ErrorList {
	switch base := path.Base(executable); {
	case executable == "":
		return nil
	case strings.ContainsRune(executable, 0) || base == "." || base == ".." || base == "/" || len(base) > maxFileName:
		return field.ErrorList{field.Invalid(at, executable, "is not the name of a file; write that of the program, such as codex")}
	case base != executable:
		return field.ErrorList{field.Invalid(at, executable, suggest(fmt.Sprintf("%q is a path; the name of the file is compared alone", executable), base))}
	}
	return nil
}

// The bounds of stop.keys: more are not a polite way to end something.
const (
	maxKeys     = 16
	maxKeyBytes = 32
)

func validateStop(s *ClassStop, path *field.Path) field.ErrorList {
	if len(s.Keys) == 0 {
		return oneOf(path.Child("signal"), s.Signal, "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
	}
	var errs field.ErrorList
	if s.Signal != "" {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "signal and keys are both given; keep one of them"))
	}
	at := path.Child("keys")
	if len(s.Keys) > maxKeys {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("there are %d keys; at most %d are typed", len(s.Keys), maxKeys)))
	}
	for i, key := range s.Keys {
		errs = append(errs, validateKey(key, at.Index(i))...)
	}
	return errs
}

func validateKey(key string, at *field.Path) field.ErrorList {
	if key == "" || len(key) > maxKeyBytes || strings.ContainsFunc(key, notInKey) {
		return field.ErrorList{field.Invalid(at, key, fmt.Sprintf("%q is no key; write it as tmux does, such as C-c, Escape or Enter", key))}
	}
	return nil
}

func notInKey(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func validateCredentials(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		errs = append(errs, validateEnvName(name, path.Index(i))...)
	}
	return errs
}

func validateUnsetEnv(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		at := path.Index(i)
		stem := strings.TrimSuffix(name, "*")
		if stem == "" && name != "" {
			errs = append(errs, field.Invalid(at, name, `"*" alone would leave nothing of the environment; write how the names begin, such as MYAGENT_*`))
			continue
		}
		errs = append(errs, validateEnvName(stem, at)...)
	}
	return errs
}
