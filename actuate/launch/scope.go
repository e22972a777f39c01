// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/scope"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// How long a launcher waits for its scope: with limits, without which its client may not
// be wanted, and without any, when the client can do without a scope.
const (
	limitedPatience = 5 * time.Second
	scopePatience   = time.Second
)

// enterScope puts this process, and so the client and all that it starts, into a control
// group of its own. Nothing else of the launch comes after it but the receipt: a launch
// that fails has made no scope. A client that can do without goes on without.
func (l *launcher) enterScope(o *actuate.ScopeOrder) *fault {
	if o == nil {
		return nil
	}
	patience := scopePatience
	if o.Limited() {
		patience = limitedPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	group, err := l.scopeOf(ctx, *o)
	if err == nil {
		l.scope = observe.Scope{Name: o.Name, ControlGroup: group}
		return nil
	}
	l.scopeProblem = err.Error()
	if !o.Required {
		return nil
	}
	f := &fault{reason: spec.ReasonResourcesUnsupported, file: scope.SocketOf(o.Bus), message: fmt.Sprintf(
		"The client was not executed: its limits could not be put in force: %v; see systemctl --user status, or set spec.resources.onUnsupported: Ignore.", err)}
	if errors.Is(err, scope.ErrRefused) {
		// It can be reached, and would refuse again until it is another one.
		f.lookedFor = o.Name
	}
	return f
}

func (l *launcher) scopeOf(ctx context.Context, o actuate.ScopeOrder) (group string, err error) {
	if o.Bus == "" {
		return "", errors.New(o.Problem)
	}
	return scope.Enter(ctx, o, l.ControlGroup)
}
