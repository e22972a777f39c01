// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/muxlet/muxlet/spec"
)

// With is the reading that the roots would give a Reader with these defaults if files
// were written as given: the whole content by path. The error names a path at which no
// manifest would be read. The reading itself stays as it is.
func (r Reading) With(files map[string][]byte, defaults *spec.SessionDefaults) (Reading, error) {
	r.Roots, r.Files = slices.Clone(r.Roots), slices.Clone(r.Files)
	for path, content := range files {
		at := slices.IndexFunc(r.Roots, func(root Root) bool { return below(filepath.Clean(path), root.Path) })
		if at < 0 || !isManifest(filepath.Base(path)) && r.Roots[at].Path != path {
			return r, fmt.Errorf("%s is not read as a manifest: it is not below a manifest directory of this daemon", path)
		}
		root := &r.Roots[at]
		decoded := spec.DecodeFile(path, content).Under(defaults)
		if root.Access == Missing {
			root.Access, root.Message = Readable, ""
		}
		known := slices.IndexFunc(r.Files, func(f File) bool { return f.Path == path })
		root.Documents += documents(decoded)
		if known < 0 {
			r.Files = append(r.Files, File{Path: path, Documents: decoded})
			continue
		}
		root.Documents -= documents(r.Files[known].Documents)
		r.Files[known] = File{Path: path, Documents: decoded}
	}
	return r, nil
}
