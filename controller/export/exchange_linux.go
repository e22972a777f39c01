// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange swaps two directories in one step. The error matches errors.ErrUnsupported
// where that cannot be done.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
