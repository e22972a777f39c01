// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"github.com/muxlet/muxlet/spec"
)

// goOn is how a person ends a hold.
const goOn = "put the files back or run `muxlet prune --confirm`"

func heldMessage(why string) string {
	return "the removal is held because " + why + "; " + goOn
}

// withGoOn completes a message that an earlier process left in a record.
func withGoOn(message string) string {
	if strings.Contains(message, goOn) {
		return message
	}
	return message + "; " + goOn
}

func invalidMessage(problems []spec.Problem, good *spec.Session) string {
	first := "the document is not valid"
	if len(problems) > 0 {
		first = problems[0].Error()
	}
	if good == nil {
		return first + "; nothing is started until this is mended"
	}
	return first + "; the last valid spec stays in force until this is mended"
}

// joined makes "a", "a and b" or "a, b and c".
func joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
