// Package destination says to which network addresses the platform connects where a configuration or a client names the server:
// never to those at which a cloud serves the credentials of the machine. It checks the address of each connection, whatever
// name, redirect or change of a name led to it. Source: ADR-0016, ADR-0017.
package destination

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Check refuses addresses that only have a meaning on this machine or its local network: loopback, link-local (where clouds
// serve credentials), multicast and unspecified addresses, the other addresses at which clouds do so, and IPv6 addresses that
// stand for one of these. Private networks are permitted, since databases and virtual clusters are there. AllowLoopback is for
// servers on this machine.
func Check(address netip.Addr, allowLoopback bool) error {
	actual := resolve(address)
	if actual.IsLoopback() && !allowLoopback || actual.IsLinkLocalUnicast() || actual.IsMulticast() || actual.IsUnspecified() ||
		slices.Contains(metadata, actual) {
		return fmt.Errorf("the platform does not connect to the address %s", address)
	}
	return nil
}

// Dialer returns a dialer that applies Check to each address that it connects to. Timeout bounds a connection; 0 is no bound.
// Unix sockets are not checked.
func Dialer(timeout time.Duration, allowLoopback bool) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Control: func(network, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(network, "unix") {
			return nil
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address of a server: %w", err)
		}
		return Check(at.Addr(), allowLoopback)
	}}
}

// metadata are the addresses outside of link-local ones at which clouds serve credentials or control a machine: those of AWS
// and Google Cloud for IPv6, and those of Alibaba Cloud, Oracle Cloud and Azure.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// embedded are the IPv6 addresses that contain an IPv4 address, and the first byte of it. Routers and translators send them
// there.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// resolve returns the IPv4 address that an IPv6 address stands for, or the address itself, without a zone.
func resolve(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.IsLoopback() || address.IsUnspecified() {
		return address
	}
	for _, one := range embedded {
		if one.prefix.Contains(address) {
			bytes := address.As16()
			return netip.AddrFrom4([4]byte(bytes[one.at : one.at+4]))
		}
	}
	return address
}
