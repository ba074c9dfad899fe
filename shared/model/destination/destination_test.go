package destination_test

import (
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"management.platform.sh/shared/model/destination"
)

// Source: ADR-0017.
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"10.0.0.1": true, "192.168.1.1": true, "8.8.8.8": true, "fd00::1": true, "2001:db8::1": true, "100.100.100.201": true,
		"64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.8.9.10": false, "::1": false, "::ffff:127.0.0.1": false, "169.254.169.254": false, "fe80::1": false,
		"fe80::1%lo": false, "0.0.0.0": false, "::": false, "224.0.0.1": false, "ff02::1": false,
		"fd00:ec2::254": false, "fd00:ec2::254%lo": false, "fd20:ce::254": false, "100.100.100.200": false, "192.0.0.192": false,
		"168.63.129.16": false, "::ffff:168.63.129.16": false, "::ffff:169.254.169.254": false, "::169.254.169.254": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b::6464:64c8": false, "2002:a9fe:a9fe::1": false,
	} {
		address := netip.MustParseAddr(text)
		if err := destination.Check(address, false); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
		// Loopback is the only refused address that can be permitted.
		if err := destination.Check(address, true); (err == nil) != (good || address.Unmap().IsLoopback()) {
			t.Errorf("%s, where loopback is permitted: %v", text, err)
		}
	}
}

// The address of the connection is checked, not only the text of the name.
func TestDialer(t *testing.T) {
	t.Parallel()
	dial := func(network, address string, allowLoopback bool) error {
		connection, err := destination.Dialer(time.Minute, allowLoopback).DialContext(t.Context(), network, address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
	listen := func(network, address string) string {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener.Addr().String()
	}
	server := listen("tcp", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{server, net.JoinHostPort("localhost", port)} {
		if err := dial("tcp4", name, false); err == nil {
			t.Errorf("%s is connected to", name)
		}
		if err := dial("tcp4", name, true); err != nil {
			t.Error(err)
		}
	}
	if err := dial("unix", listen("unix", filepath.Join(t.TempDir(), "s")), false); err != nil {
		t.Error(err)
	}
}
