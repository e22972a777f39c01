// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/spec"
)

// wordCost is what a word takes beside its bytes: its NUL and a pointer to it.
const wordCost = 1 + 8

// checkSize refuses what the system would refuse with less to say: arguments and an
// environment that are larger than it takes. It names the largest of them, never what
// is in it.
func checkSize(program string, argv, environ []string) *fault {
	total, largest, what := len(program)+wordCost, 0, ""
	count := func(word, name string) {
		total += len(word) + wordCost
		if len(word) > largest {
			largest, what = len(word), name
		}
	}
	for i, word := range argv {
		count(word, fmt.Sprintf("argument %d", i))
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		count(pair, "the variable "+name)
	}
	why := ""
	if space := argumentSpace(); total > space {
		why = fmt.Sprintf("its arguments and environment take %d bytes where the system gives %d, most of them %s with %d", total, space, what, largest)
	} else if largest >= maxWord {
		why = fmt.Sprintf("%s has %d bytes where the system gives %d", what, largest, maxWord-1)
	}
	if why == "" {
		return nil
	}
	return &fault{reason: spec.ReasonExecFailed, lookedFor: program, message: fmt.Sprintf(
		"The client was not executed: %s; put long text into a file.", why)}
}
