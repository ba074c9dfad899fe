// Package vcluster makes the names and labels that the open syncer of vcluster gives to objects on a host, with its own
// code at the version that go.mod pins. The tests of shared/syncpatch compare the naming profile vcluster with them. It is
// a module of its own, because that code imports hundreds of packages. It compares nothing with our code. Source: ADR-0048.
package vcluster
