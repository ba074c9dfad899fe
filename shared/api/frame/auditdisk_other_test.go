//go:build !linux

package frame_test

import "testing"

func fullDisk(t *testing.T) *outage { t.Skip("disks are filled on Linux alone"); return nil }
func readOnly(t *testing.T) *outage { t.Skip("file systems are mounted on Linux alone"); return nil }
