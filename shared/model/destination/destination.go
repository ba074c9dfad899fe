// Package destination restricts the network addresses that the platform connects to where a configuration or a client names
// the server. It refuses the addresses at which a cloud serves the credentials of the machine. It checks the address of
// each connection, so that no name, redirect or change in DNS evades the check. Source: ADR-0016, ADR-0017.
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
// serve credentials), multicast and unspecified addresses. It also refuses the other addresses at which clouds serve
// credentials, and IPv6 addresses that embed a refused address. Private networks are permitted, since databases and virtual
// clusters are there. AllowLoopback permits loopback addresses, for servers on this machine.
func Check(address netip.Addr, allowLoopback bool) error {
	actual := resolve(address)
	if actual.IsLoopback() && !allowLoopback || actual.IsLinkLocalUnicast() || actual.IsMulticast() || actual.IsUnspecified() ||
		slices.Contains(metadata, actual) {
		return fmt.Errorf("the platform does not connect to the address %s", address)
	}
	return nil
}

// Dialer returns a dialer that applies Check to each address that it connects to. Timeout bounds the time to connect; 0
// means no bound. Unix sockets are not checked.
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

// metadata are the addresses, in addition to link-local addresses, at which clouds serve credentials or control a machine:
// AWS and Google Cloud over IPv6, then Alibaba Cloud, Oracle Cloud and Azure.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// embedded are the IPv6 prefixes whose addresses contain an IPv4 address, with the position of its first byte. Routers and
// translators forward packets to the IPv4 address.
var embedded = []struct {
	prefix netip.Prefix
	offset int
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
			return netip.AddrFrom4([4]byte(bytes[one.offset : one.offset+4]))
		}
	}
	return address
}
