// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// create puts a turn into the queue of a session when it is its turn to ask. Where the
// connection breaks it asks once more, for a moment until the daemon is back: the
// request's id keeps it from being made twice.
func (o *sendOptions) create(ctx context.Context, client *server.Client, name string, asks chan struct{}) (*spec.Turn, error) {
	asks <- struct{}{}
	defer func() { <-asks }()
	// A turn's times are whole seconds. None shortens what was asked for.
	deadline := metav1.NewTime(o.now().Add(o.timeout + time.Second - 1).Truncate(time.Second))
	asked := &spec.Turn{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{spec.TurnRequestAnnotation: uuid.NewString()}},
		Spec:       spec.TurnSpec{SessionName: name, Prompt: o.prompt, Deadline: &deadline},
	}
	made, err := client.CreateTurn(ctx, asked)
	if errors.Is(err, server.ErrBroken) {
		made, err = o.createAgain(ctx, client, asked)
		if errors.Is(err, server.ErrBroken) || errors.Is(err, server.ErrNoDaemon) {
			err = fmt.Errorf("the daemon has ended while it took the turn to session %q; whether it has it is not known: "+
				"see \"muxlet get turns --session %s\" before you send it again: %w", name, name, err)
		}
	}
	if server.ReasonOf(err) == server.ReasonDeadlineExceeded || err != nil && ctx.Err() != nil {
		err = server.NewError(server.ReasonDeadlineExceeded, name, fmt.Sprintf(
			"the daemon was not waited for until it said whether it has taken the turn to session %q: see \"muxlet get turns --session %s\" before you send it again.", name, name))
	}
	return made, err
}

func (o *sendOptions) createAgain(ctx context.Context, client *server.Client, asked *spec.Turn) (*spec.Turn, error) {
	for waited := time.Duration(0); ; waited += o.pollPeriod {
		made, err := client.CreateTurn(ctx, asked)
		if !errors.Is(err, server.ErrNoDaemon) || waited >= o.blindness || !pause(ctx, o.pollPeriod) {
			return made, err
		}
	}
}

// turnWatch knows the turns of one or all sessions that are sent since it began. It goes
// on with another run of the daemon.
type turnWatch struct {
	stop   context.CancelFunc
	client *server.Client

	mu    sync.Mutex
	known map[types.UID]*spec.Turn
	gone  map[types.UID]bool
	// changed is closed at the next change.
	changed chan struct{}
	// ended is why nothing more will be known.
	ended error
}

// watchTurns begins to watch, nothing where nothing is waited for.
func (o *sendOptions) watchTurns(ctx context.Context, client *server.Client, names []string) (*turnWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &turnWatch{stop: stop, client: client, known: map[types.UID]*spec.Turn{}, gone: map[types.UID]bool{}, changed: make(chan struct{})}
	if o.wait == waitNone {
		return w, nil
	}
	var session string
	if len(names) == 1 {
		session = names[0]
	}
	began := make(chan struct{})
	f := server.Follower[spec.Turn]{
		Listed:  func(all []spec.Turn) error { w.listed(all); close(began); return nil },
		Changed: func(kind watch.EventType, t *spec.Turn) error { w.take(kind, t); return nil },
	}
	if o.follows() {
		f.Lost, f.Back = o.lost, o.back
	}
	ended := make(chan error, 1)
	go func() {
		err := client.FollowNewTurns(ctx, session, f)
		ended <- err
		w.end(err)
	}()
	select {
	case <-began:
		return w, nil
	case err := <-ended:
		stop()
		return nil, err
	}
}

// follows says whether a person reads what is told on the way.
func (g *globals) follows() bool { return g.progress != nil && g.progress() }

func (w *turnWatch) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *turnWatch) listed(all []spec.Turn) {
	w.change(func() {
		for i := range all {
			w.known[all[i].UID] = &all[i]
		}
	})
}

func (w *turnWatch) take(kind watch.EventType, t *spec.Turn) {
	w.change(func() {
		w.known[t.UID] = t
		w.gone[t.UID] = kind == watch.Deleted
	})
}

func (w *turnWatch) end(err error) { w.change(func() { w.ended = err }) }

// now is what is known of a turn: nil before anything was told of it; whether it is gone;
// what is closed at the next change, or why none is to come.
func (w *turnWatch) now(uid types.UID) (t *spec.Turn, gone bool, changed <-chan struct{}, ended error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[uid], w.gone[uid], w.changed, w.ended
}

// await waits until the turn is what is waited for, or over. The client's taking it is
// waited for until a while after its deadline, since the daemon ends it then; its work
// as long as it takes.
func (o *sendOptions) await(ctx context.Context, w *turnWatch, made *spec.Turn) (*spec.Turn, error) {
	handOver, cancel := context.WithTimeout(ctx, o.timeout+o.handOver)
	defer cancel()
	told := ""
	turn, err := o.untilTurn(handOver, w, made, &told, delivered)
	if err != nil || o.wait != waitCompleted {
		return turn, err
	}
	return o.untilTurn(ctx, w, turn, &told, over)
}

func over(t *spec.Turn) bool { return t.Status.FinishedAt != nil }

func delivered(t *spec.Turn) bool {
	switch spec.DisplayTurnStatus(t) {
	case spec.TurnPending, spec.TurnDelivering:
		return over(t)
	}
	return true
}

// untilTurn waits for one turn. told is the last line that a person was told.
func (o *sendOptions) untilTurn(ctx context.Context, w *turnWatch, last *spec.Turn, told *string, reached func(*spec.Turn) bool) (*spec.Turn, error) {
	for {
		now, gone, changed, ended := w.now(last.UID)
		if now != nil {
			last = now
		}
		o.tellProgress(last, told)
		switch {
		case reached(last):
			return last, nil
		case ctx.Err() != nil:
			return nil, o.unfinishedTurn(ctx, last)
		case ended != nil:
			return nil, ended
		}
		// Of a turn that was over when the daemon could be asked again nothing is told.
		var unheard <-chan time.Time
		if now == nil || gone {
			unheard = time.After(o.patience)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-unheard:
			if err := w.ask(ctx, last); err != nil {
				return nil, err
			}
		}
	}
}

// tellProgress tells a person what a turn waits for, when that is another thing than told.
func (o *sendOptions) tellProgress(t *spec.Turn, told *string) {
	if words := progressWords(t); o.follows() && words != "" && words != *told {
		*told = words
		o.complain("turn/%s: %s", t.Name, words)
	}
}

// ask looks at a turn by itself. The error says that it is not kept.
func (w *turnWatch) ask(ctx context.Context, last *spec.Turn) error {
	now, err := w.client.Turn(ctx, last.Name)
	if server.ReasonOf(err) == server.ReasonNotFound || err == nil && now.UID != last.UID {
		return server.NewTurnError(server.ReasonNotFound, last.Name, fmt.Sprintf(
			"turn %q to session %q is no longer kept, and what became of it was not seen: see \"muxlet get events %s\".",
			last.Name, last.Spec.SessionName, last.Spec.SessionName))
	}
	if err == nil {
		w.change(func() { w.known[now.UID] = now })
	}
	return nil
}

// unfinishedTurn is the error about a wait that ended before its turn did.
func (o *sendOptions) unfinishedTurn(ctx context.Context, last *spec.Turn) error {
	why := fmt.Sprintf("was not seen to be delivered within %s", o.timeout+o.handOver)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "was not waited for any longer"
	}
	next := fmt.Sprintf("see \"muxlet get turn %s\"", last.Name)
	if spec.DisplayTurnStatus(last) == spec.TurnPending {
		next = fmt.Sprintf("\"muxlet cancel %s\" takes it back", last.Name)
	}
	return server.NewTurnError(server.ReasonDeadlineExceeded, last.Name, fmt.Sprintf(
		"turn %q to session %q %s (it is %s); it goes on: %s.", last.Name, last.Spec.SessionName, why, turnWords(last), next))
}

// turnWords are the status of a turn and what explains it.
func turnWords(t *spec.Turn) string {
	reason, message := turnReason(t)
	words := string(spec.DisplayTurnStatus(t))
	if reason != "" && reason != words {
		words += " (" + reason + ")"
	}
	if message != "" {
		words += ": " + strings.TrimSuffix(message, ".")
	}
	return words
}
