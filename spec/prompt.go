// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckPrompt gives a prompt as it is handed over, without the newlines at its end: a
// newline there would be a second submit key. Everything else is kept, byte for byte.
// The error says in one phrase what is wrong: the prompt is empty, white space alone,
// longer than MaxPromptBytes or no UTF-8, or has a control character other than newline
// and tab, which a terminal would take for a key. It names a character and the offset
// of its first byte, from 0, and never quotes the prompt.
func CheckPrompt(prompt string) (clean string, err error) {
	clean = strings.TrimRight(prompt, "\n")
	if len(clean) > MaxPromptBytes {
		return "", fmt.Errorf("the prompt has %d bytes; at most %d are taken: put the text into a file and name that", len(clean), MaxPromptBytes)
	}
	for i, r := range clean {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(clean[i:], string(utf8.RuneError)):
			return "", fmt.Errorf("the prompt is not UTF-8: a wrong byte stands at offset %d", i)
		case r == '\r':
			return "", fmt.Errorf("the prompt has a carriage return (U+000D) at byte offset %d: convert the line ends to newlines", i)
		case isControl(r):
			return "", fmt.Errorf("the prompt has %s at byte offset %d, which a terminal takes for a key: newline and tab are the only control characters that can be sent", controlName(r), i)
		}
	}
	switch {
	case clean == "":
		return "", errors.New("the prompt is empty")
	case strings.TrimSpace(clean) == "":
		return "", errors.New("the prompt is white space alone")
	}
	return clean, nil
}

// isControl tells the characters that act on a terminal: C0 but newline and tab, DEL,
// and C1.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0
}

// controlName names a control character, with the word for those that people know.
func controlName(r rune) string {
	names := map[rune]string{0x00: "NUL", 0x03: "Ctrl-C", 0x04: "Ctrl-D", 0x07: "bell", 0x08: "backspace", 0x1B: "escape", 0x7F: "delete"}
	if name, known := names[r]; known {
		return fmt.Sprintf("the control character U+%04X (%s)", r, name)
	}
	return fmt.Sprintf("the control character U+%04X", r)
}

// CheckPromptFor says why the clients of a class cannot be given a prompt that
// CheckPrompt takes; nil when they can. A word of a command line is shorter than the
// longest prompt.
func CheckPromptFor(class *ClientClassSpec, prompt string) error {
	word := class.Submit.Method == SubmitArgument || refersTo(class.Submit.Command, VarPrompt)
	if size := len(strings.TrimRight(prompt, "\n")); word && size > MaxArgumentBytes {
		return fmt.Errorf("the prompt has %d bytes; this class gives it to its client as a word of a command line, which has at most %d: put the text into a file and name that", size, MaxArgumentBytes)
	}
	return nil
}

// ValidateTurn says what is wrong with a Turn that is to be created now. Whether there
// is such a session, and what its class takes (see CheckPromptFor), is known where the
// sessions are.
func ValidateTurn(t *Turn, now time.Time) field.ErrorList {
	metadata := field.NewPath("metadata")
	errs := validateNamespace(t.Namespace, metadata.Child("namespace"))
	errs = append(errs, validateTags(&t.ObjectMeta, metadata)...)
	path := field.NewPath("spec")
	errs = append(errs, validateName(t.Spec.SessionName, path.Child("sessionName"), "session", "checkout-bug")...)
	errs = append(errs, validatePrompt(t.Spec.Prompt, path.Child("prompt"))...)
	if t.Spec.Deadline == nil {
		return errs
	}
	at, deadline := path.Child("deadline"), t.Spec.Deadline.Time
	switch {
	case !deadline.After(now):
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "the deadline has passed already: give a later one, or none for two minutes"))
	case deadline.After(now.Add(MaxTurnDeadline)):
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("the deadline is more than %d days ahead", MaxTurnDeadline/(24*time.Hour))))
	}
	return errs
}

func validatePrompt(prompt string, at *field.Path) field.ErrorList {
	if _, err := CheckPrompt(prompt); err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	return nil
}
