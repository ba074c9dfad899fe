package frame

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/identity"
)

// Sharing returns the endpoint with a class of work that its requests take a place in, besides their place as a request.
// Source: ADR-0020.
func (e Endpoint) Sharing(class fairness.Class) Endpoint {
	e.class = &class
	return e
}

// takePlaces takes the places that a request needs, and waits for them where it must. The call holds them until
// releasePlaces. Errors: those of fairness.Places.Take.
func (f *frame) takePlaces(ctx context.Context, c *call) error {
	if f.server.Places == nil {
		return nil
	}
	name, label := sharer(c)
	for class := range fairness.Classes {
		if !f.needs(c, class) {
			continue
		}
		place, err := f.server.Places.Take(ctx, class, name, label)
		if err != nil {
			return err
		}
		c.places[class] = place
	}
	return nil
}

// needs tells whether a request takes a place of a class.
func (f *frame) needs(c *call, class fairness.Class) bool {
	switch class {
	case fairness.Requests:
		return true
	case fairness.Bodies:
		return c.http.Method != http.MethodGet && c.http.Method != http.MethodHead &&
			(c.http.ContentLength > limits.LargeBodyBytes || c.http.ContentLength < 0)
	case fairness.Lists:
		return (f.endpoint.Verb == "list" || f.endpoint.Verb == "deletecollection") && large(c.query.Get("limit"))
	default:
		return f.endpoint.class != nil && *f.endpoint.class == class
	}
}

// large tells whether a list with this limit may read more than one page of the state.
func large(limit string) bool {
	number, err := strconv.Atoi(limit)
	return err != nil || number <= 0 || number > limits.PageObjects
}

// releasePlaces gives back the places of a request.
func (c *call) releasePlaces() {
	for class := range c.places {
		c.places[class].Release()
	}
}

// keepWatching gives back all places of a watch but the one of a watch: from here on, it mostly waits.
func (c *call) keepWatching() {
	for class := range c.places {
		if fairness.Class(class) != fairness.Watches {
			c.places[class].Release()
		}
	}
}

// sharer returns what the places of a request are shared by, and what a message calls it: the owner of the access key, or the
// address of a client without one.
func sharer(c *call) (name, label string) {
	if c.caller.Owner != (identity.Owner{}) {
		name = c.caller.Owner.String()
		return name, name
	}
	return c.address(), thisAddress
}

// thisAddress is what messages call the address of a client.
const thisAddress = "this address"

// address is what the client is told apart by while nobody knows the caller.
func (c *call) address() string { return address(c.http.RemoteAddr) }

// address returns what anonymous clients are told apart by: their IPv4 address, or the first 64 bits of their IPv6 address,
// which is what one client has.
func address(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	ip := from.Addr()
	if err != nil {
		if ip, err = netip.ParseAddr(remote); err != nil {
			return "address " + remote
		}
	}
	if ip = ip.Unmap(); ip.Is6() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			return "address " + prefix.String()
		}
	}
	return "address " + ip.String()
}
