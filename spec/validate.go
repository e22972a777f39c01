// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// Validate says what is wrong with a defaulted Session. It looks at nothing but
// the Session: whether a directory or a program exists is found out when it is
// needed.
func Validate(s *Session) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validateMetadata(&s.ObjectMeta, path, "session", "checkout-bug")
	errs = append(errs, validateNamespace(s.Namespace, path.Child("namespace"))...)
	return append(errs, validateSpec(&s.Spec, field.NewPath("spec"))...)
}

// validateNamespace checks that of an object that has one.
func validateNamespace(namespace string, at *field.Path) field.ErrorList {
	if namespace == "" || namespace == Namespace {
		return nil
	}
	return field.ErrorList{field.Invalid(at, namespace,
		fmt.Sprintf("%q does not exist here: leave the namespace out; the only one is %s", namespace, Namespace))}
}

// validateMetadata checks what an object of any kind has, called as what says.
func validateMetadata(s *metav1.ObjectMeta, path *field.Path, what, example string) field.ErrorList {
	errs := append(validateName(s.Name, path.Child("name"), what, example), validateTags(s, path)...)
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// validateTags checks labels and annotations.
func validateTags(s *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for key, value := range s.Labels {
		at := path.Child("labels").Key(key)
		errs = append(errs, qualified(at, key)...)
		if len(content.IsLabelValue(value)) > 0 {
			errs = append(errs, field.Invalid(at, value,
				fmt.Sprintf(`%q cannot be the value of a label: use at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends`, value)))
		}
	}
	size := 0
	for key, value := range s.Annotations {
		errs = append(errs, qualified(path.Child("annotations").Key(key), strings.ToLower(key))...)
		size += len(key) + len(value)
	}
	if size > maxAnnotationBytes {
		errs = append(errs, field.Invalid(path.Child("annotations"), field.OmitValueType{},
			fmt.Sprintf("the annotations have %d bytes in all; at most %d are kept", size, maxAnnotationBytes)))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// maxAnnotationBytes is the limit of Kubernetes.
const maxAnnotationBytes = 256 << 10

// qualified checks the key of a label or an annotation.
func qualified(path *field.Path, key string) field.ErrorList {
	if len(content.IsLabelKey(key)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, key,
		fmt.Sprintf(`%q cannot be a key: use at most 63 letters, digits, "-", "_" and ".", after a prefix such as example.com/ if you like`, key))}
}

func validateName(name string, path *field.Path, what, example string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, fmt.Sprintf("the %s needs a name, such as %s", what, example))}
	case len(content.IsDNS1123Label(name)) == 0:
		return nil
	}
	detail := fmt.Sprintf(`%q cannot be a %s's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends`, name, what)
	return field.ErrorList{field.Invalid(path, name, suggest(detail, nearestName(name)))}
}

var notInName = lazyregexp.New(`[^a-z0-9]+`)

// NameFrom makes the name of a session from any text, such as a directory's name; empty
// when the text has nothing for one.
func NameFrom(text string) string { return nearestName(text) }

// nearestName turns a text into an object's name; empty when nothing is left.
func nearestName(name string) string {
	name = strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.TrimRight(name[:min(len(name), content.DNS1123LabelMaxLength)], "-")
}

func validateSpec(s *SessionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.ClientClassName != "" {
		errs = ValidateClassName(s.ClientClassName, path.Child("clientClassName"))
	}
	errs = append(errs, validateClient(&s.Client, path.Child("client"))...)
	errs = append(errs, validateWorkspace(&s.Workspace, path.Child("workspace"))...)
	errs = append(errs, validateConversation(&s.Conversation, path.Child("conversation"))...)
	errs = append(errs, oneOf(path.Child("provisioningPolicy"), s.ProvisioningPolicy, ProvisioningEager, ProvisioningOnDemand)...)
	if s.InitialPrompt != "" {
		errs = append(errs, validatePrompt(s.InitialPrompt, path.Child("initialPrompt"))...)
	}
	errs = append(errs, oneOf(path.Child("restartPolicy"), s.RestartPolicy, RestartAlways, RestartOnFailure, RestartNever)...)
	errs = append(errs, oneOf(path.Child("recoveryPolicy"), s.RecoveryPolicy, RecoveryResume, RecoveryDormant)...)
	errs = append(errs, oneOf(path.Child("updateStrategy", "type"), s.UpdateStrategy.Type, UpdateWhenIdle, UpdateRecreate, UpdateOnRestart)...)
	errs = append(errs, oneOf(path.Child("deletionPolicy"), s.DeletionPolicy, DeletionDelete, DeletionOrphan)...)
	errs = append(errs, validateProbe(s.LivenessProbe, path.Child("livenessProbe"))...)
	errs = append(errs, between(path.Child("startupTimeoutSeconds"), s.StartupTimeoutSeconds, 1, 3600)...)
	errs = append(errs, between(path.Child("terminationGracePeriodSeconds"), s.TerminationGracePeriodSeconds, 0, 3600)...)
	errs = append(errs, validateResources(&s.Resources, path.Child("resources"))...)
	terminal := path.Child("terminal")
	errs = append(errs, between(terminal.Child("columns"), &s.Terminal.Columns, 20, 1000)...)
	errs = append(errs, between(terminal.Child("rows"), &s.Terminal.Rows, 5, 1000)...)
	return append(errs, between(terminal.Child("historyLimit"), s.Terminal.HistoryLimit, 0, 1_000_000)...)
}

// ValidateClassName checks the form alone: whether there is such a class is known
// where all documents are.
func ValidateClassName(name string, path *field.Path) field.ErrorList {
	return validateName(name, path, "client class", ClassClaude)
}

func validateWorkspace(w *WorkspaceSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("type"), w.Type, WorkspaceDirectory, WorkspaceDirectoryOrCreate)
	at := path.Child("directory")
	if w.Directory == "" {
		return append(errs, field.Required(at, "the session needs a directory to run in, such as ~/src/shop"))
	}
	return append(errs, validatePath(at, w.Directory)...)
}

// maxConversationID is the length of the longest id that is taken, in bytes.
const maxConversationID = 256

// conversationID is the form of an id that is safe as a word of a command line and
// as part of a file's name and of a glob: nothing in it can mean another conversation.
var conversationID = lazyregexp.New(`^[A-Za-z0-9_.:@+=,~][A-Za-z0-9_.:@+=,~-]*$`)

// ValidConversationID says whether an id can be given to a client and looked for.
func ValidConversationID(id string) bool {
	return len(id) <= maxConversationID && conversationID.MatchString(id) && strings.Trim(id, ".") != ""
}

func validateConversation(c *ConversationSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("missingPolicy"), c.MissingPolicy, MissingStartFresh, MissingHold)
	if c.ID != "" && !ValidConversationID(c.ID) {
		errs = append(errs, field.Invalid(path.Child("id"), c.ID,
			fmt.Sprintf(`%q cannot be the id of a conversation: use at most %d letters, digits, "-", "_", ".", ":", "@", "+", "=", "," and "~", no "-" first`, c.ID, maxConversationID)))
	}
	return errs
}

var anchored = lazyregexp.New(`^(/|~$|~/|\$[A-Za-z_]|\$\{[A-Za-z_][A-Za-z0-9_]*\})`)

// validatePath wants a path that does not depend on where the daemon runs.
func validatePath(at *field.Path, path string) field.ErrorList {
	switch {
	case strings.ContainsRune(path, 0):
		return field.ErrorList{field.Invalid(at, path, "a path cannot have a NUL byte")}
	case anchored.MatchString(path):
		return nil
	case strings.HasPrefix(path, "~"):
		return field.ErrorList{field.Invalid(at, path, fmt.Sprintf("%q: ~ stands for your own home directory alone; write the other path in full", path))}
	}
	detail := fmt.Sprintf("%q is relative; it must begin with /, ~/ or $VAR", path)
	return field.ErrorList{field.Invalid(at, path, suggest(detail, "~/"+strings.TrimPrefix(path, "./")))}
}

// oneOf checks an enum.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	detail := fmt.Sprintf("%q is not one of %s", string(value), strings.Join(words, ", "))
	return field.ErrorList{field.Invalid(path, string(value), suggest(detail, nearest(string(value), words)))}
}

// between checks a number, limits included.
func between(path *field.Path, value *int32, low, high int32) field.ErrorList {
	if value == nil || (*value >= low && *value <= high) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("%d is not between %d and %d", *value, low, high))}
}
