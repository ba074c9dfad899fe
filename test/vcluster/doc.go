// Package vcluster makes the names and labels that the open syncer of vcluster gives to objects on a host, with the code of the syncer at the
// version that go.mod pins. The tests of shared/syncpatch compare the naming profile vcluster with them. It is a module of its own, because the
// syncer imports hundreds of packages. It does not import our code. Source: ADR-0048.
package vcluster
