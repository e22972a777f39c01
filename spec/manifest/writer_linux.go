// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hasWriter tells whether some process has the file open for writing. The kernel
// refuses a read lease on such a file; one that it grants is given back at once.
// What cannot be told (a file of somebody else, a file system without leases) is
// no writer. Source: fcntl(2), F_SETLEASE.
func hasWriter(f *os.File) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return errors.Is(err, unix.EAGAIN) && !isRemote(f)
}

// isRemote tells a file system whose server decides about leases: it refuses them
// for reasons of its own, in the same words. Source: nfs4_add_lease and
// cifs_setlease in the kernel.
func isRemote(f *os.File) bool {
	var st unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return true
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return true
	}
	return false
}
