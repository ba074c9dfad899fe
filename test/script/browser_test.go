//go:build unix

package script_test

import (
	"flag"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	pageLink = regexp.MustCompile(`<a href="(/auth/password/login[^"]*)"`)
	pageID   = regexp.MustCompile(`name="id" value="([^"]*)"`)
	pageTag  = regexp.MustCompile(`<[^>]*>`)
)

// approve acts as a person in a browser, with a user name and a password: it enters the code of a device, signs in and decides. It prints the
// texts of the page with the decision.
func approve(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	options := flag.NewFlagSet("approve", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	deny := options.Bool("deny", false, "")
	ts.Check(options.Parse(args))
	if options.NArg() != 3 {
		ts.Fatalf("usage: approve [-deny] CODE USER PASSWORDFILE")
	}
	b, origin := newBrowser(ts), ts.Getenv("SECURE")
	choice := b.send(origin+"/auth/device", url.Values{"user_code": {options.Arg(0)}})
	question := b.send(origin+"/auth/password/login", url.Values{
		"id": {b.findGroup(pageID, b.visit(origin+b.findGroup(pageLink, choice)))}, "username": {options.Arg(1)},
		"password": {strings.TrimSpace(ts.ReadFile(options.Arg(2)))},
	})
	decision := "allow"
	if *deny {
		decision = "deny"
	}
	b.send(origin+"/auth/confirm", url.Values{"id": {b.findGroup(pageID, question)}, "decision": {decision}})
	_, err := io.WriteString(ts.Stdout(), html.UnescapeString(pageTag.ReplaceAllString(question, "\n")))
	ts.Check(err)
}

// signIn acts as a person in a browser with a session at the provider: it opens the address that platform login prints, allows the program to
// have a key, and is redirected to the program.
func signIn(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	b := newBrowser(ts)
	asked := b.visit(singleArgument(ts, args))
	b.send(ts.Getenv("SECURE")+"/auth/confirm", url.Values{"id": {b.findGroup(pageID, asked)}, "decision": {"allow"}})
}

// browser keeps cookies, and follows redirects.
type browser struct {
	*http.Client
	ts *testscript.TestScript
}

// newBrowser returns a browser that trusts the platform, and the issuer of the story.
func newBrowser(ts *testscript.TestScript) browser {
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	b := browser{client(ts, patience), ts}
	b.Jar = jar
	if text, err := os.ReadFile(ts.MkAbs("issuer.crt")); err == nil {
		b.Transport.(*http.Transport).TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	}
	return b
}

func (b browser) load(request *http.Request) string {
	request.Header.Set("Accept", "text/html")
	answer, err := b.Do(request)
	b.ts.Check(err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	b.ts.Check(err)
	sessionOf(b.ts).saw(string(text))
	if answer.StatusCode != http.StatusOK {
		b.ts.Fatalf("%s: %s %s", request.URL.Path, answer.Status, text)
	}
	return string(text)
}

// visit loads a page.
func (b browser) visit(address string) string {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	b.ts.Check(err)
	return b.load(request)
}

// send sends a form of a page of the platform.
func (b browser) send(address string, form url.Values) string {
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	b.ts.Check(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.load(request)
}

// findGroup returns the text of a page that matches the group of a pattern.
func (b browser) findGroup(pattern *regexp.Regexp, page string) string {
	match := pattern.FindStringSubmatch(page)
	if match == nil {
		b.ts.Fatalf("the page has no match for %s:\n%s", pattern, page)
	}
	return html.UnescapeString(match[1])
}

// stopwatch prints the seconds since it was begun. No story fails because of them.
func stopwatch(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	s := sessionOf(ts)
	switch singleArgument(ts, args) {
	case "begin":
		s.begun = time.Now()
	case "read":
		ts.Logf("%.1f seconds", time.Since(s.begun).Seconds())
	default:
		ts.Fatalf("usage: stopwatch begin|read")
	}
}
