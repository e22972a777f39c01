// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import "strings"

// Unit is the unit of systemd that a process is in.
type Unit struct {
	// Name such as muxlet.service; empty when the process is in none.
	Name string
	// User is true when it is a unit of a user's manager, and not of the system's.
	User bool
}

// Service says whether the unit is a service, which ends as a whole; a scope, such as the
// session of a login, is none.
func (u Unit) Service() bool { return strings.HasSuffix(u.Name, ".service") }

// UnitOf reads the unit from the path of a control group, as systemd lays them out: slices,
// then the unit; inside of user@UID.service slices and the unit of that user's manager.
func UnitOf(cgroup string) Unit {
	unit := Unit{}
	for word := range strings.SplitSeq(cgroup, "/") {
		switch {
		case word == "" || strings.HasSuffix(word, ".slice"):
		case strings.HasPrefix(word, "user@") && strings.HasSuffix(word, ".service") && !unit.User:
			unit = Unit{Name: word, User: true}
		default:
			unit.Name = word
			return unit
		}
	}
	if strings.HasPrefix(unit.Name, "user@") {
		unit.User = false // the manager itself, which is a unit of the system
	}
	return unit
}
