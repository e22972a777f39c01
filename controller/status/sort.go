// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

func sortByLast(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return a.Last.Compare(b.Last) })
}

func uidOf(s string) types.UID { return types.UID(s) }
