package frame

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

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
// releasePlaces. Errors: the errors of fairness.Places.Take.
func (f *frame) takePlaces(ctx context.Context, c *call) error {
	if f.server.Places == nil {
		return nil
	}
	name, label := f.fairnessKey(c)
	for class := range fairness.Classes {
		if f.needsPlace(c, class) {
			place, err := f.server.Places.Take(ctx, class, name, label)
			if err != nil {
				return err
			}
			c.places[class] = place
		}
		if class == fairness.Bodies {
			c.receive()
		}
	}
	return nil
}

// receive reads the body of a request before it takes further places, so that a client that sends it slowly does not keep others
// waiting. The operation that reads the body gets the error.
func (c *call) receive() {
	if c.http.ContentLength == 0 || reads(c.http) {
		return
	}
	body, err := c.body()
	c.body = func() ([]byte, error) { return body, err }
}

// reads reports whether a request is one without a body.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// needsPlace reports whether a request takes a place of a class.
func (f *frame) needsPlace(c *call, class fairness.Class) bool {
	switch class {
	case fairness.Requests:
		return true
	case fairness.Bodies:
		return !reads(c.http) && (c.http.ContentLength > limits.LargeBodyBytes || c.http.ContentLength < 0)
	case fairness.Lists:
		switch {
		case f.endpoint.class != nil && *f.endpoint.class == class:
			return true
		case f.endpoint.Verb == "list", f.endpoint.Verb == "deletecollection":
			return isLargeLimit(c.query.Get("limit"))
		case f.endpoint.Verb == "watch":
			return beginsWithState(c.query)
		default:
			return false
		}
	case fairness.Heavy:
		// Evaluations compute in workers, and large lists have places of their own.
		return f.endpoint.class != nil && *f.endpoint.class == class || f.endpoint.class == nil && !f.needsPlace(c, fairness.Lists) &&
			(f.needsPlace(c, fairness.Bodies) || len(c.http.URL.RawQuery) > limits.LargeQueryBytes || headBytes(c.http.Header) > limits.LargeHeadBytes)
	default:
		return f.endpoint.class != nil && *f.endpoint.class == class
	}
}

// headBytes is the size of the header lines of a request.
func headBytes(header http.Header) int {
	size := 0
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}

// beginsWithState reports whether a watch begins with all objects, so that it costs as much as a large list at first.
func beginsWithState(query url.Values) bool {
	if query.Has("sendInitialEvents") {
		return flag(query, "sendInitialEvents")
	}
	version := query.Get("resourceVersion")
	return version == "" || version == "0"
}

// isLargeLimit reports whether a list with this limit may read more than one page of the state.
func isLargeLimit(limit string) bool {
	number, err := strconv.Atoi(limit)
	return err != nil || number <= 0 || number > limits.PageObjects
}

// releasePlaces gives back the places of a request.
func (c *call) releasePlaces() {
	for class := range c.places {
		c.places[class].Release()
	}
}

// keepWatchPlaces gives back all places of a watch except its place of the class Watches and the place for its first objects.
func (c *call) keepWatchPlaces() {
	for class := range c.places {
		if of := fairness.Class(class); of != fairness.Watches && of != fairness.Lists {
			c.places[class].Release()
		}
	}
}

// fairnessKey returns what the places of a request are shared by, and what a message calls it: the person behind the access key, or the
// address of a client without one.
func (f *frame) fairnessKey(c *call) (name, label string) {
	if c.caller.Owner != (identity.Owner{}) {
		name = c.caller.Person()
		return name, name
	}
	return f.address(c), thisAddress
}

// thisAddress is what messages call the address of a client.
const thisAddress = "this address"

// address identifies the client while the caller is not known.
func (f *frame) address(c *call) string { return address(f.client(c.http)) }

// client returns the address of the client of a request, without a port: the address that the first of the trusted proxies gives,
// or else the address of the connection. The client can invent the entries of X-Forwarded-For before that address. A request that
// did not come through all trusted proxies has the address of its connection.
func (f *frame) client(r *http.Request) string {
	if proxies := f.server.Proxies; proxies > 0 {
		given := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if len(given) >= proxies {
			if ip := parseAddress(strings.TrimSpace(given[len(given)-proxies])); ip.IsValid() {
				return ip.String()
			}
		}
	}
	if ip := parseAddress(r.RemoteAddr); ip.IsValid() {
		return ip.String()
	}
	return r.RemoteAddr
}

// parseAddress reads an address with or without a port. The result is not valid if the text is no address.
func parseAddress(text string) netip.Addr {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap()
	}
	ip, _ := netip.ParseAddr(text)
	return ip.Unmap()
}

// address returns what identifies an anonymous client: its IPv4 address, or the first 64 bits of its IPv6 address,
// since one client has all addresses that begin with them.
func address(remote string) string {
	ip := parseAddress(remote)
	if !ip.IsValid() {
		return "address " + remote
	}
	if ip.Is6() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			return "address " + prefix.String()
		}
	}
	return "address " + ip.String()
}
