// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"k8s.io/utils/clock"
)

// NewWatcher returns the best Watcher of this platform: the polling one.
func NewWatcher(interval time.Duration, clk clock.WithTicker) (Watcher, error) {
	return NewPollingWatcher(interval, clk), nil
}
