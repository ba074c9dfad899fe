//go:build unix

package script_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var consoleAsset = regexp.MustCompile(`="console/(assets/[\w.-]+)"`)

// console fetches the page of the console and each of its assets, below the base path and at the root, with and without compression. They are
// equal to the files of the repository, byte for byte.
func console(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: console")
	}
	fetch := func(url, encoding string) (*http.Response, []byte) {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		ts.Check(err)
		if encoding != "" {
			request.Header.Set("Accept-Encoding", encoding)
		}
		answer, err := client(ts, patience).Do(request)
		ts.Check(err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		ts.Check(err)
		if answer.StatusCode != http.StatusOK {
			ts.Fatalf("%s: %s\n%s", url, answer.Status, body)
		}
		return answer, body
	}
	readAsset := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(repository, "functions", "serveconsole", name))
		ts.Check(err)
		return content
	}
	page := strings.ReplaceAll(string(readAsset("assets/index.html")), `="assets/`, `="console/assets/`)
	files, err := filepath.Glob(filepath.Join(repository, "functions", "serveconsole", "assets", "*"))
	ts.Check(err)
	var assets []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".gz"); name != "index.html" && !slices.Contains(assets, "assets/"+name) {
			assets = append(assets, "assets/"+name)
		}
	}
	// The page names a style sheet and a script, which loads the others.
	for _, one := range consoleAsset.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(assets, one[1]) {
			ts.Fatalf("the page names %s, which is not in the repository", one[1])
		}
	}
	for _, base := range []string{ts.Getenv("ORIGIN"), ts.Getenv("API")} {
		answer, body := fetch(base+"/console", "")
		if string(body) != page || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "trusted-types 'none'") {
			ts.Fatalf("%s/console: %v\n%s", base, answer.Header, body)
		}
		for _, one := range assets {
			url := base + "/console/" + one
			packed, err := os.ReadFile(filepath.Join(repository, "functions", "serveconsole", one+".gz"))
			if os.IsNotExist(err) {
				if _, plain := fetch(url, "gzip"); !bytes.Equal(plain, readAsset(one)) {
					ts.Fatalf("%s is not that of the repository", url)
				}
				continue
			}
			ts.Check(err)
			if answer, sent := fetch(url, "gzip"); sessionOf(ts).shape != lambdaRESTAPI && // which compresses nothing
				(answer.Header.Get("Content-Encoding") != "gzip" || !bytes.Equal(sent, packed)) {
				ts.Fatalf("%s is not that of the repository: %v, %d bytes", url, answer.Header, len(sent))
			}
			reader, err := gzip.NewReader(bytes.NewReader(packed))
			ts.Check(err)
			text, err := io.ReadAll(reader)
			ts.Check(err)
			if _, plain := fetch(url, ""); !bytes.Equal(plain, text) {
				ts.Fatalf("%s, unpacked, is not that of the repository: %d bytes", url, len(plain))
			}
		}
	}
}
