//go:build unix

package script_test

import (
	"flag"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	pageLink = regexp.MustCompile(`<a href="(/auth/password/login[^"]*)"`)
	pageID   = regexp.MustCompile(`name="id" value="([^"]*)"`)
	pageTag  = regexp.MustCompile(`<[^>]*>`)
)

// approve does what a person does in a browser, with a user name and a password: it enters the code of a device, signs in and decides.
// It prints the texts of the page that asks for the decision.
func approve(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	options := flag.NewFlagSet("approve", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	deny := options.Bool("deny", false, "")
	ts.Check(options.Parse(args))
	if options.NArg() != 3 {
		ts.Fatalf("usage: approve [-deny] CODE USER PASSWORDFILE")
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	browser := client(ts, patience)
	browser.Jar = jar
	origin := ts.Getenv("SECURE")
	load := func(request *http.Request) string {
		request.Header.Set("Accept", "text/html")
		answer, err := browser.Do(request)
		ts.Check(err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		ts.Check(err)
		sessionOf(ts).saw(string(text))
		if answer.StatusCode != http.StatusOK {
			ts.Fatalf("%s: %s %s", request.URL.Path, answer.Status, text)
		}
		return string(text)
	}
	visit := func(address string) string {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		ts.Check(err)
		return load(request)
	}
	send := func(address string, form url.Values) string {
		request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
		ts.Check(err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		return load(request)
	}
	found := func(pattern *regexp.Regexp, page string) string {
		match := pattern.FindStringSubmatch(page)
		if match == nil {
			ts.Fatalf("the page has no match for %s:\n%s", pattern, page)
		}
		return html.UnescapeString(match[1])
	}
	choice := send(origin+"/auth/device", url.Values{"user_code": {options.Arg(0)}})
	asked := send(origin+"/auth/password/login", url.Values{
		"id": {found(pageID, visit(origin+found(pageLink, choice)))}, "username": {options.Arg(1)},
		"password": {strings.TrimSpace(ts.ReadFile(options.Arg(2)))},
	})
	decision := "allow"
	if *deny {
		decision = "deny"
	}
	send(origin+"/auth/confirm", url.Values{"id": {found(pageID, asked)}, "decision": {decision}})
	_, err = io.WriteString(ts.Stdout(), html.UnescapeString(pageTag.ReplaceAllString(asked, "\n")))
	ts.Check(err)
}
