// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/muxlet/muxlet/actuate/launch"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/export"
	"github.com/muxlet/muxlet/controller/record"
	keptscreen "github.com/muxlet/muxlet/controller/screen"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe/client/report"
)

// stateKinds are the files that make up the state, in the versions that this muxlet reads.
// What is set aside, kept of older versions or written anew by each daemon is taken along
// as it is.
func stateKinds() export.Kinds {
	var kinds export.Kinds
	versions := controller.FileVersions()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		kinds = append(kinds, export.Kind{Pattern: name, Version: versions[name]})
	}
	return append(kinds,
		export.Kind{Pattern: "boot_id"},
		export.Kind{Pattern: "session-defaults", Version: settingsMemoryVersion},
		export.Kind{Pattern: "records/*.json", Version: record.Version, Name: "session"},
		export.Kind{Pattern: "records/*.json.prev", Version: record.Version},
		export.Kind{Pattern: "archive/*.json", Version: record.Version, Name: "removed session"},
		export.Kind{Pattern: "quarantine/*"},
		export.Kind{Pattern: "turns/quarantine/*"},
		export.Kind{Pattern: "turns/*/*.json", Version: turn.Version, Name: "turn"},
		export.Kind{Pattern: "turns/*/*.prompt"},
		export.Kind{Pattern: "turns/*/*.spent"},
		export.Kind{Pattern: "turns/*/*.forgotten"},
		export.Kind{Pattern: "receipts/*.json", Version: launch.ReceiptVersion},
		export.Kind{Pattern: "reports/*.json", Version: report.Version, Name: "waiting report"},
		export.Kind{Pattern: "reports/*.damaged"},
		export.Kind{Pattern: "reports/limit"},
		export.Kind{Pattern: "screens/*.json", Version: keptscreen.Version},
		export.Kind{Pattern: "events/events.jsonl"},
		export.Kind{Pattern: "hooks/*.json"},
		export.Kind{Pattern: "backup/**"},
	)
}
