// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "sync"

// maxHandled is how many handled reports are remembered.
const maxHandled = 4096

// handled remembers the reports that were handled, by their ids: one whose answer
// came too late for its hook comes a second time through the spool.
type handled struct {
	mu    sync.Mutex
	done  map[string]bool // false while it is being handled
	order []string
}

// once calls f unless it was called for the id and has succeeded. done is false
// while another call for the same id runs, and after an error.
func (h *handled) once(id string, f func() error) (done bool, err error) {
	if done, known := h.begin(id); known {
		return done, nil
	}
	err = f()
	h.end(id, err == nil)
	return err == nil, err
}

func (h *handled) begin(id string) (done, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if done, known := h.done[id]; known {
		return done, true
	}
	if h.done == nil {
		h.done = map[string]bool{}
	}
	h.done[id] = false
	return false, false
}

func (h *handled) end(id string, succeeded bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !succeeded {
		delete(h.done, id)
		return
	}
	h.done[id] = true
	h.order = append(h.order, id)
	if len(h.order) > maxHandled {
		delete(h.done, h.order[0])
		h.order = h.order[1:]
	}
}
