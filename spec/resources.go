// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ResourcesSpec is what a client may use of the machine, with everything that it starts.
type ResourcesSpec struct {
	// Limits of what runs in the client's scope. Without any the client may use what the
	// machine has.
	Limits ResourceLimits `json:"limits,omitempty"`
	// OnUnsupported says what becomes of a client whose limits cannot be put in force: there
	// is no systemd user manager that could be reached, or the settings say scopes: Never.
	// An edit of it restarts nothing. Default Fail.
	OnUnsupported OnUnsupported `json:"onUnsupported,omitempty"`
}

// ResourceLimits are those of the client's control group: of the client and of everything
// that it starts, together.
type ResourceLimits struct {
	// Memory that all of them may have, such as 2Gi; they get no swap. Who needs more is
	// killed: the client then has ended OOMKilled and backs off. 16Mi to 1Pi.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// CPU time, in processors: 500m is half of one. More is not given, nothing is killed.
	// 10m to 10000.
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Tasks is the number of processes and threads. A program that wants more is told so by
	// an error. 32 to 1000000.
	Tasks *int32 `json:"tasks,omitempty"`
}

// None says whether nothing is limited.
func (l *ResourceLimits) None() bool { return l.Memory == nil && l.CPU == nil && l.Tasks == nil }

// OnUnsupported says what becomes of a client whose limits cannot be put in force.
type OnUnsupported string

// What can become of it.
const (
	// UnsupportedFail starts no client without its limits.
	UnsupportedFail OnUnsupported = "Fail"
	// UnsupportedIgnore starts it without them, and says so in an event.
	UnsupportedIgnore OnUnsupported = "Ignore"
)

// ScopeMode says whether clients get scopes of their own.
type ScopeMode string

// The scope modes.
const (
	// ScopesAuto gives each client a scope when the user's systemd manager can be reached.
	ScopesAuto ScopeMode = "Auto"
	// ScopesNever gives none.
	ScopesNever ScopeMode = "Never"
)

// ScopeStatus is the control group of the client, made for this incarnation alone.
type ScopeStatus struct {
	// Name of the unit of the user's systemd manager.
	Name string `json:"name"`
	// ControlGroup is its path below the root of the control groups' file system.
	ControlGroup string `json:"controlGroup,omitempty"`
}

// The bounds of limits. The launcher itself, a Go program, enters the scope before it
// executes the client: it must live in the smallest one.
const (
	minMemory = "16Mi"
	maxMemory = "1Pi"
	minCPU    = "10m"
	maxCPU    = "10000"
	minTasks  = 32
	maxTasks  = 1_000_000
)

func validateResources(r *ResourcesSpec, path *field.Path) field.ErrorList {
	limits := path.Child("limits")
	errs := quantityBetween(limits.Child("memory"), r.Limits.Memory, minMemory, maxMemory)
	errs = append(errs, quantityBetween(limits.Child("cpu"), r.Limits.CPU, minCPU, maxCPU)...)
	errs = append(errs, between(limits.Child("tasks"), r.Limits.Tasks, minTasks, maxTasks)...)
	return append(errs, oneOf(path.Child("onUnsupported"), r.OnUnsupported, UnsupportedFail, UnsupportedIgnore)...)
}

// quantityBetween checks an amount, limits included.
func quantityBetween(path *field.Path, value *resource.Quantity, low, high string) field.ErrorList {
	if value == nil {
		return nil
	}
	// A comparison may change how the amount is held, which is the document's.
	given := value.DeepCopy()
	if given.Cmp(resource.MustParse(low)) >= 0 && given.Cmp(resource.MustParse(high)) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, given.String(), fmt.Sprintf("%s is not between %s and %s", &given, low, high))}
}
