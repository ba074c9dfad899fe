//go:build !nofastpath

package fastpath

const enabled = true
