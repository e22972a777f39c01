// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// writeEvent sends one event of a stream at once. An error means that the client
// went away, which it will see for itself.
func writeEvent(w http.ResponseWriter, event map[string]any) {
	data, err := json.Marshal(event)
	if err != nil {
		data = []byte(`{"type":"error"}`)
	}
	_, _ = fmt.Fprintf(w, "event: %v\ndata: %s\n\n", event["type"], data)
	_ = http.NewResponseController(w).Flush()
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}
