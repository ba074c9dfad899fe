//go:build !nosplice

package stored

const enabled = true
