// Package serveconsole serves the web console: one page, and the scripts and styles that it loads. They are embedded, and the
// same for everybody: a request for them needs no credential, no configuration and no state. What the console shows, its
// scripts ask the API for, like any other client. infra/console builds what is embedded from the folder web.
// Source: ADR-0030.
package serveconsole

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"sync"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

//go:embed assets
var embedded embed.FS

// root is the path of the console.
const root = "/console"

// names are the paths of the pages below root. The same document is served for each of them, and its scripts show the page.
var names = []string{"", "home", "keys", "clusters", "tokens", "studio", "people", "teams", "audit", "config"}

// policy is what the page may do: load its own scripts, styles and pictures, and ask its own host. Nothing is inline, nothing
// comes from another host, and no other page may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// mediaTypes are those of the embedded files, by their endings before that of gzip.
var mediaTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// Deps is what the operation needs: the pages by their paths.
type Deps struct{ pages func() map[string]*frame.Page }

// Input is the request.
type Input = frame.DocumentInput

// Do returns a page or an asset. Errors: NotFound for every other path, also for the name of an asset of another version: a
// script in place of which a page came would be an error without a reason.
func Do(_ context.Context, deps Deps, in Input) (*frame.Page, error) {
	page, found := deps.pages()[in.Path]
	if !found {
		return nil, apierror.NoRoute()
	}
	return page, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "serveconsole",
	Endpoints: []frame.Endpoint{
		document(root), document(root).Head(),
		document(root + "/{path...}"), document(root + "/{path...}").Head(),
	},
}

func document(path string) frame.Endpoint {
	return frame.Document(path, frame.Everyone, open, Do).AlsoAtRoot().Unconfigured()
}

func open(*platform.Environment) Deps { return Deps{pages: pages} }

// pages are the pages of the program, read once.
var pages = sync.OnceValue(func() map[string]*frame.Page {
	found, err := readAssets()
	if err != nil {
		// The files are embedded: this is a broken build.
		panic(fmt.Sprintf("serveconsole: %v", err))
	}
	return found
})

// own are the header fields that all files of the console have: other sites cannot load them.
func own(more map[string]string) map[string]string {
	more["Cross-Origin-Resource-Policy"] = "same-origin"
	return more
}

func readAssets() (map[string]*frame.Page, error) {
	found := map[string]*frame.Page{}
	files, err := embedded.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		body, err := embedded.ReadFile("assets/" + file.Name())
		if err != nil {
			return nil, err
		}
		name, gzipped := strings.CutSuffix(file.Name(), ".gz")
		if name == "index.html" {
			addPages(found, string(body))
			continue
		}
		mediaType, known := mediaTypes[path.Ext(name)]
		if !known {
			return nil, fmt.Errorf("the asset %s has no media type", name)
		}
		found[root+"/assets/"+name] = &frame.Page{
			MediaType: mediaType, Body: body, Gzipped: gzipped,
			Header: own(map[string]string{"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}),
		}
	}
	return found, nil
}

// addPages adds the document at the paths of all pages. It names its assets relative to its own path, so that it works below
// every base path: only at root itself, which has no slash at its end, the folder is part of these names.
func addPages(found map[string]*frame.Page, text string) {
	add := func(path, folder string) {
		body := []byte(strings.ReplaceAll(text, `="assets/`, `="`+folder+`assets/`))
		sum := sha256.Sum256(body)
		found[path] = &frame.Page{
			MediaType: "text/html; charset=utf-8", Body: body, ETag: hex.EncodeToString(sum[:16]),
			Header: own(map[string]string{
				"Cache-Control": "no-cache", "Vary": "Accept-Encoding",
				"Content-Security-Policy":    policy,
				"Cross-Origin-Opener-Policy": "same-origin",
				"Permissions-Policy":         "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
				"Referrer-Policy":            "no-referrer",
			}),
		}
	}
	add(root, path.Base(root)+"/")
	for _, page := range names {
		add(root+"/"+page, "")
	}
}
