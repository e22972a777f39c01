// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/muxlet/muxlet/spec"
)

// maxTurnBodyBytes has room for the longest prompt however it is written: JSON makes at
// most six bytes of one.
const maxTurnBodyBytes = 8 << 20

// bodyLimit is what a request may send.
func bodyLimit(r *http.Request) int64 {
	if r.Method == http.MethodPost {
		switch strings.TrimSuffix(r.URL.Path, "/") {
		case turnsPath:
			return maxTurnBodyBytes
		case diffPath:
			return maxDiffBodyBytes
		}
	}
	return maxBodyBytes
}

// readTurn reads the turn that is to be made. What could be meant otherwise than it would
// be taken is refused: a field that is not known, and text that is none, which a decoder
// would put something else for.
func readTurn(c call) (spec.Turn, error) {
	var turn spec.Turn
	data, err := io.ReadAll(c.Body)
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return turn, NewTurnError(metav1.StatusReasonRequestEntityTooLarge, "", fmt.Sprintf(
			"the request is longer than %d bytes: a prompt can have at most %d", tooLong.Limit, spec.MaxPromptBytes))
	}
	if err != nil {
		return turn, badRequest("the turn could not be read: %v", err)
	}
	if at := notText(data); at >= 0 {
		return turn, NewTurnError(ReasonInvalid, "", fmt.Sprintf("the turn is not UTF-8 at byte %d of the request: convert the text", at))
	}
	strict, err := kjson.UnmarshalStrict(data, &turn)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return turn, badRequest("the turn cannot be decoded: %v", err)
	}
	return turn, validTurn(&turn)
}

// notText is where JSON has bytes or an escape that are no characters, or -1.
func notText(data []byte) int {
	for i := 0; i < len(data); {
		if data[i] == '\\' {
			n := escape(data[i:])
			if n == 0 {
				return i
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// escape is the length of the escape at the beginning of data, both halves of a pair
// together; 0 for half a pair alone.
func escape(data []byte) int {
	switch unit := codeUnit(data); {
	case unit >= 0xdc00 && unit <= 0xdfff:
		return 0
	case unit >= 0xd800 && unit <= 0xdbff:
		if low := codeUnit(data[6:]); low < 0xdc00 || low > 0xdfff {
			return 0
		}
		return 12
	}
	return min(2, len(data))
}

// codeUnit is the number of an escape \uXXXX at the beginning of data, or -1.
func codeUnit(data []byte) int64 {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(unit)
}

// validTurn says what is wrong with a turn that is to be made, as far as it is wrong for
// every session. The status of a new object means nothing, as in Kubernetes.
func validTurn(t *spec.Turn) error {
	meta, specPath := field.NewPath("metadata"), field.NewPath("spec")
	var wrong field.ErrorList
	if t.APIVersion != "" && t.APIVersion != turnTypeMeta.APIVersion {
		wrong = append(wrong, field.NotSupported(field.NewPath("apiVersion"), t.APIVersion, []string{turnTypeMeta.APIVersion}))
	}
	if t.Kind != "" && t.Kind != turnTypeMeta.Kind {
		wrong = append(wrong, field.NotSupported(field.NewPath("kind"), t.Kind, []string{turnTypeMeta.Kind}))
	}
	if t.Name+t.GenerateName != "" {
		wrong = append(wrong, field.Forbidden(meta.Child("name"), "the daemon names turns; give the annotation "+spec.TurnRequestAnnotation+" to know one again"))
	}
	if t.Namespace != "" && t.Namespace != spec.Namespace {
		wrong = append(wrong, field.NotSupported(meta.Child("namespace"), t.Namespace, []string{spec.Namespace}))
	}
	if len(t.Labels) > 0 {
		wrong = append(wrong, field.Forbidden(meta.Child("labels"), "a turn has those of its session"))
	}
	for _, name := range sortedKeys(t.Annotations) {
		if name != spec.TurnRequestAnnotation {
			wrong = append(wrong, field.NotSupported(meta.Child("annotations"), name, []string{spec.TurnRequestAnnotation}))
		} else if n := len(t.Annotations[name]); n > maxRequestIDBytes {
			wrong = append(wrong, field.TooLong(meta.Child("annotations").Key(name), "", maxRequestIDBytes))
		}
	}
	if t.Spec.SessionName == "" {
		wrong = append(wrong, field.Required(specPath.Child("sessionName"), "the name of a session"))
	}
	if t.Spec.Prompt == "" {
		wrong = append(wrong, field.Required(specPath.Child("prompt"), "the text"))
	}
	if len(wrong) == 0 {
		return nil
	}
	return NewTurnError(ReasonInvalid, "", "the turn is not valid: "+wrong.ToAggregate().Error())
}

// maxRequestIDBytes bounds spec.TurnRequestAnnotation, which is kept with the turn.
const maxRequestIDBytes = 253

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
