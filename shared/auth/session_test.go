package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"management.platform.sh/shared/model/secret"
)

// A session cookie counts only in requests that a page of the same origin sends, and that no form can send. Source: ADR-0030.
func TestWithSession(t *testing.T) {
	t.Parallel()
	const bearer = `with "; , \ and ~ in its thirty-two characters`
	cookie := SessionCookie + "=" + SessionValue(secret.String(bearer))
	type headers = map[string][]string
	withHeaders := func(more headers) headers {
		result := headers{"Cookie": {cookie}, "Sec-Fetch-Site": {"same-origin"}}
		for name, values := range more {
			result[name] = values
		}
		return result
	}
	json := []string{"application/json"}
	for _, row := range []struct {
		about, method string
		header        headers
		want          string
	}{
		{"a page reads", "GET", withHeaders(nil), "Bearer " + bearer},
		{"a page writes", "POST", withHeaders(headers{"Content-Type": json}), "Bearer " + bearer},
		{"a page patches", "PATCH", withHeaders(headers{"Content-Type": {"application/merge-patch+json; charset=utf-8"}}), "Bearer " + bearer},
		{"a page deletes without a body", "DELETE", withHeaders(nil), "Bearer " + bearer},
		{"beside other cookies", "GET", withHeaders(headers{"Cookie": {"theme=dark; " + cookie}}), "Bearer " + bearer},
		{"a header wins", "GET", withHeaders(headers{"Authorization": {"Bearer other"}}), "Bearer other"},
		{"an empty header wins", "GET", withHeaders(headers{"Authorization": {""}}), ""},
		{"no cookie", "GET", headers{"Sec-Fetch-Site": {"same-origin"}}, ""},
		{"no word about the site", "GET", headers{"Cookie": {cookie}}, ""},
		{"another site", "GET", withHeaders(headers{"Sec-Fetch-Site": {"cross-site"}}), ""},
		{"another port or subdomain", "GET", withHeaders(headers{"Sec-Fetch-Site": {"same-site"}}), ""},
		{"a link or the address bar", "GET", withHeaders(headers{"Sec-Fetch-Site": {"none"}}), ""},
		{"two words about the site", "GET", withHeaders(headers{"Sec-Fetch-Site": {"same-origin", "cross-site"}}), ""},
		{"both words in one", "GET", withHeaders(headers{"Sec-Fetch-Site": {"same-origin, cross-site"}}), ""},
		{"a form", "POST", withHeaders(headers{"Content-Type": {"application/x-www-form-urlencoded"}}), ""},
		{"a form with files", "POST", withHeaders(headers{"Content-Type": {"multipart/form-data; boundary=x"}}), ""},
		{"a form in plain text", "POST", withHeaders(headers{"Content-Type": {"Text/Plain; charset=utf-8"}}), ""},
		{"a body of no type", "POST", withHeaders(nil), ""},
		{"a type that cannot be read", "POST", withHeaders(headers{"Content-Type": {"application/json; ="}}), ""},
		{"two types", "PUT", withHeaders(headers{"Content-Type": {"application/json", "text/plain"}}), ""},
		{"two sessions", "GET", withHeaders(headers{"Cookie": {cookie + "; " + cookie}}), ""},
		{"two sessions in two headers", "GET", withHeaders(headers{"Cookie": {cookie, cookie}}), ""},
		{"not base64url", "GET", withHeaders(headers{"Cookie": {SessionCookie + "=a+b="}}), ""},
		{"empty", "GET", withHeaders(headers{"Cookie": {SessionCookie + "="}}), ""},
		{"another name", "GET", withHeaders(headers{"Cookie": {"platform=" + SessionValue(bearer)}}), ""},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(row.method, "/", nil)
			request.Header = row.header
			before := len(request.Header)
			if got := WithSession(request).Header.Get("Authorization"); got != row.want {
				t.Errorf("Authorization is %q, want %q", got, row.want)
			}
			if len(request.Header) != before {
				t.Error("the given request was changed")
			}
		})
	}
}

// A request without a cookie is the same request: sessions cost it nothing.
func TestWithSessionCostsNothing(t *testing.T) {
	given := httptest.NewRequest(http.MethodGet, "/", nil)
	given.Header.Set("Authorization", "Bearer x")
	if WithSession(given) != given {
		t.Error("it is another request")
	}
	if allocations := testing.AllocsPerRun(100, func() { WithSession(given) }); allocations > 0 {
		t.Errorf("it takes %v allocations", allocations)
	}
}
