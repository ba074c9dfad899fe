package frame

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/shared/webpage"
)

// formType is the media type of the forms of browsers and of the requests of OAuth.
const formType = "application/x-www-form-urlencoded"

// formDuration is the maximum duration of a request of a sign-in, which may wait for a slow provider.
const formDuration = 20 * time.Second

// FormInput is a request of a browser, or of a client of OAuth.
type FormInput struct {
	// Segment returns a parameter of the path.
	Segment func(name string) string
	// Query are the parameters of the URL, and Form the fields of the body.
	Query, Form url.Values
	// Cookies are the cookies by name.
	Cookies map[string]string
	// Address is the address of the client, and Network what limits tell clients apart by: for IPv6, the first half of it.
	Address, Network string
	// RequestID is the ID that pages name.
	RequestID string
	// IdempotencyKey is the name that the client gives to the request, so that a repetition of it can be recognized. Empty: it gives none.
	IdempotencyKey string
	// Basic is what the client sent by HTTP Basic authentication. Nil: the client did not use it. A header that cannot be read has no
	// user name.
	Basic *url.Userinfo
}

// FormResult is the answer to a FormInput. One of Location, Page and JSON is set.
type FormResult struct {
	// Status is the status of a page or of JSON. 0: 200.
	Status int
	// Location is where the browser goes next, with a GET.
	Location string
	// Page is shown to a person.
	Page *webpage.Page
	// JSON is encoded for a program.
	JSON any
	// Cookies are set or removed.
	Cookies []Cookie
	// Annotations are annotations of the audit event. They are recorded also together with an error.
	Annotations map[string]string
}

// Cookie is a cookie that only this host gets, over TLS alone, and that no script reads. Its name must begin with `__Host-`.
type Cookie struct {
	Name, Value string
	// MaxAge is how long the browser keeps it. 0: the browser removes it.
	MaxAge time.Duration
}

// Form binds an operation to a path for browsers and clients of OAuth. It needs no credential and ignores one. Nothing of an
// answer is stored by browsers, and no other site learns the address of a page. Errors are pages if the client prefers HTML. If the
// state cannot be reached, the answer is 503. A form of another site is refused, and so is a request of a browser in advance.
// Source: ADR-0031.
func Form[D any](
	method, path string, open func(*platform.Environment) D, do func(context.Context, D, FormInput) (FormResult, error),
) Endpoint {
	return Endpoint{
		Route: Route{Method: method, Path: path, Root: true}, Target: Target{Verb: strings.ToLower(method)},
		Response: Response{customHeaders: true}, access: access{public: Everyone}, page: page{html: true},
		open: func(env *platform.Environment) operation {
			deps, protection := open(env), http.NewCrossOriginProtection()
			return func(ctx context.Context, c *call) (*answer, error) {
				ctx, cancel := context.WithTimeout(ctx, formDuration)
				defer cancel()
				if err := protection.Check(c.http); err != nil && !c.endpoint.crossOriginForm {
					return nil, apierror.Forbidden(schema.GroupResource{}, "", "the form is that of another site", nil).Because(err)
				}
				if isPrefetch(c.http) {
					return nil, apierror.Prefetched()
				}
				form, err := readForm(c)
				if err != nil {
					return nil, err
				}
				keys := c.http.Header.Values(idempotencyKey)
				if len(keys) > 0 {
					if err := checkIdempotencyKey(keys); err != nil {
						return nil, err
					}
				}
				in := FormInput{
					Segment: c.http.PathValue, Query: c.query, Form: form, Cookies: map[string]string{}, Address: c.client, Network: address(c.client), RequestID: c.id,
					IdempotencyKey: strings.Join(keys, ""), Basic: basic(c.http),
				}
				for _, cookie := range c.http.Cookies() {
					in.Cookies[cookie.Name] = cookie.Value
				}
				result, err := do(ctx, deps, in)
				if err != nil {
					if known := (*apierror.Error)(nil); errors.Is(err, store.ErrUnavailable) && !errors.As(err, &known) {
						err = apierror.Unavailable().Because(err)
					}
					return &answer{annotations: result.Annotations}, err
				}
				if result.Status >= http.StatusBadRequest {
					c.annotations = result.Annotations
				}
				return result.answer(env, c)
			}
		},
	}
}

// AlsoJSON returns the endpoint of a Form so that a program may send the fields of the form as an object of JSON, whose values are
// texts.
func (e Endpoint) AlsoJSON() Endpoint {
	e.jsonForm = true
	return e
}

// FromElsewhere returns the endpoint of a Form so that other sites may send the form, up to a size in bytes. A browser sends no cookie with
// it, and the form may come from another person than the one before the browser: only what the form itself proves counts. Source: ADR-0038.
func (e Endpoint) FromElsewhere(size int64) Endpoint {
	e.crossOriginForm, e.maxFormBytes = true, size
	return e
}

// isPrefetch reports whether a browser loads a page in advance, before a person opens it. Source: https://fetch.spec.whatwg.org (Sec-Purpose).
func isPrefetch(r *http.Request) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz"} {
		if strings.Contains(strings.ToLower(r.Header.Get(name)), "prefetch") {
			return true
		}
	}
	return false
}

// basic returns what a client sent by HTTP Basic authentication. Source: RFC 7617, 2.
func basic(r *http.Request) *url.Userinfo {
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	name, password, _ := r.BasicAuth()
	return url.UserPassword(name, password)
}

// readForm reads the body of a POST.
func readForm(c *call) (url.Values, error) {
	if reads(c.http) {
		return url.Values{}, nil
	}
	media, _, err := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	asJSON := c.endpoint.jsonForm && media == codec.JSON
	if err != nil || media != formType && !asJSON {
		return nil, apierror.UnsupportedMediaType(c.http.Header.Get("Content-Type"), formType)
	}
	most := cmp.Or(c.endpoint.maxFormBytes, limits.FormBytes)
	tooLarge := apierror.TooLarge(fmt.Sprintf("the form is larger than %d bytes", most))
	if c.http.ContentLength > most {
		return nil, tooLarge
	}
	text, err := c.body()
	// A form has secrets, so that nothing records it.
	c.sent = nil
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, tooLarge
	}
	if asJSON {
		return fieldsOf(text)
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		// The error quotes the form.
		return nil, apierror.BadRequest("the form cannot be read", nil)
	}
	return form, nil
}

// fieldsOf reads the fields of a form from JSON.
func fieldsOf(text []byte) (url.Values, error) {
	var fields map[string]string
	if err := json.Unmarshal(text, &fields); err != nil {
		// The error may quote the text.
		return nil, apierror.BadRequest("the body must be a JSON object whose values are texts", nil)
	}
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	return form, nil
}

// answer returns the result as an answer.
func (r FormResult) answer(env *platform.Environment, c *call) (*answer, error) {
	result := &answer{status: http.StatusOK, header: http.Header{}, annotations: r.Annotations, raw: []byte{}, mediaType: codec.JSON}
	if r.Status != 0 {
		result.status = r.Status
	}
	for _, cookie := range r.Cookies {
		set := http.Cookie{ //nolint:gosec // Secure, HttpOnly and SameSite are set
			Name: cookie.Name, Value: cookie.Value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
			MaxAge: int(cookie.MaxAge / time.Second),
		}
		if cookie.MaxAge == 0 {
			set.MaxAge = -1
		}
		result.header.Add("Set-Cookie", set.String())
	}
	switch {
	case r.Location != "":
		result.status, result.mediaType = http.StatusSeeOther, "text/plain; charset=utf-8"
		result.header.Set("Location", r.Location)
	case r.Page != nil:
		var policy string
		result.raw, policy = r.Page.Render(env.Config().UISettings, legalNotice(c))
		result.mediaType = webpage.MediaType
		result.header.Set(securityPolicy, policy)
	default:
		text, err := json.Marshal(r.JSON)
		if err != nil {
			return nil, fmt.Errorf("encoding an answer: %w", err)
		}
		text = append(text, '\n')
		result.raw = text
	}
	return result, nil
}

// legalNotice returns the address of the legal notice as seen from the page of a request: below the same base path, or prefix of a
// proxy.
func legalNotice(c *call) string {
	return strings.Repeat("../", max(0, strings.Count(c.http.URL.Path, "/")-1)) + "console/legal"
}

// securityPolicy is the header that says what a page may load and do.
const securityPolicy = "Content-Security-Policy"

// guardPage sets the headers that all answers of a Form have.
func guardPage(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	if header.Get(securityPolicy) == "" {
		header.Set(securityPolicy, webpage.Policy)
	}
}

// errorPage makes a page of a refusal, if the client prefers one.
func (f *frame) errorPage(c *call, status metav1.Status, rendered *reply) {
	if !f.endpoint.html {
		return
	}
	accepted := ParseAccept(c.http.Header.Values("Accept"))
	if len(accepted) == 0 || accepted[0].MediaType != "text/html" {
		return
	}
	page := webpage.Page{Title: "This did not work", Text: []string{status.Message}, Facts: []webpage.Fact{{Name: "Request", Value: c.id}}}
	var policy string
	rendered.body, policy = page.Render(f.server.Env.Config().UISettings, legalNotice(c))
	rendered.header.Set("Content-Type", webpage.MediaType)
	rendered.header.Set(securityPolicy, policy)
}
