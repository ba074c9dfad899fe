// Package serveconsole serves the web console: one page, and the scripts and styles that the page loads. They are embedded and public:
// a request for them needs no credential. Scripts and styles need no configuration and no state. The page has the look of the
// configuration, or the built-in look if there is no configuration. The scripts read what they show from the API, like any other client.
// infra/console builds the embedded files from the folder web.
// Source: ADR-0030.
package serveconsole

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"path"
	"strings"
	"sync"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/webpage/theme"
)

//go:embed assets web/pages.json
var embedded embed.FS

// root is the path of the console.
const root = "/console"

// pages returns the names of the pages below root, each with the key of its label. All pages are the same document, whose scripts show the
// page of the path. The list is web/pages.json, which the scripts read as well.
var pages = sync.OnceValue(func() map[string]string {
	labels := map[string]string{}
	text, err := embedded.ReadFile("web/pages.json")
	if err == nil {
		err = json.Unmarshal(text, &labels)
	}
	if err != nil {
		// The file is embedded: this is a broken build.
		panic(fmt.Sprintf("serveconsole: reading the list of pages: %v", err))
	}
	return labels
})

// The paths of the colors and of the legal notice, which come from the configuration.
const (
	themePath = root + "/theme.css"
	legalPath = root + "/legal"
)

// contentPolicy returns the Content-Security-Policy of the page. The page loads its own scripts, styles and pictures, and sends requests to its
// own host alone. Nothing is inline, and no other page may frame it. The pictures and style sheets that the configuration names are the
// only files of other hosts, and the legal notice is the only frame.
func contentPolicy(looks theme.Look) string {
	from := func(own string, others []string) string { return strings.Join(append([]string{own}, others...), " ") }
	rules := []string{
		"default-src 'none'", "script-src 'self'", from("style-src 'self'", looks.Sheets()), from("img-src 'self' data:", looks.Pictures()),
		"font-src 'self'", "connect-src 'self'",
	}
	if looks.Legal != "" {
		rules = append(rules, "frame-src 'self'")
	}
	rules = append(rules, "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'")
	return strings.Join(rules, "; ")
}

// mediaTypes are the media types of the embedded files, by the extension before .gz.
var mediaTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".txt": "text/plain; charset=utf-8",
}

type Deps struct {
	assets func() *assets
	config func() *model.ConfigStatus
}

type Input = frame.DocumentInput

// Do returns a page or an asset. Errors: NotFound for every other path, unless a browser opens the path: then the page says so, with the
// status 404. The name of an asset of another version is NotFound: a browser that got a page in place of a script would report an error
// without a reason.
func Do(_ context.Context, deps Deps, in Input) (*frame.Page, error) {
	if page, ok := deps.assets().files[in.Path]; ok {
		return page, nil
	}
	looks := theme.New(deps.config().UISettings)
	switch {
	case isPage(in.Path):
		return deps.assets().page(in.Path, looks), nil
	case in.Path == themePath:
		return &frame.Page{MediaType: mediaTypes[".css"], Body: []byte(looks.Theme), ETag: etagOf(looks.Theme), MaxAge: time.Minute, Header: sameOriginHeader(map[string]string{})}, nil
	case in.Path == legalPath && looks.Legal != "":
		text := looks.LegalDocument()
		return &frame.Page{MediaType: pageType, Body: []byte(text), ETag: etagOf(text), Header: sameOriginHeader(map[string]string{
			"Cache-Control": "no-cache", "Content-Security-Policy": theme.LegalPolicy, "Referrer-Policy": "no-referrer", "X-DNS-Prefetch-Control": "off",
		})}, nil
	}
	if opensPage(in) {
		page := deps.assets().page(in.Path, looks)
		page.Absent, page.ETag, page.Header["Vary"] = true, "", "Accept, Accept-Encoding"
		return page, nil
	}
	return nil, apierror.NoRoute()
}

// opensPage reports whether a browser opens a path as a page. For scripts, styles and pictures, browsers do not prefer HTML.
func opensPage(in Input) bool {
	return len(in.Accept) > 0 && in.Accept[0].MediaType == "text/html" && !strings.HasPrefix(in.Path, root+"/assets/")
}

// isPage reports whether the console has a page at a path.
func isPage(path string) bool {
	if path == root || path == root+"/" {
		return true
	}
	name, below := strings.CutPrefix(path, root+"/")
	return below && pages()[name] != ""
}

// dependsOnLook reports whether the configuration changes what is at a path.
func dependsOnLook(path string) bool { return isPage(path) || path == themePath || path == legalPath }

var Function = &frame.Function{
	Name: "serveconsole",
	Endpoints: []frame.Endpoint{
		document(root), document(root).Head(),
		document(root + "/{path...}"), document(root + "/{path...}").Head(),
	},
}

func document(path string) frame.Endpoint {
	return frame.Document(path, frame.Everyone, open, Do).AlsoAtRoot().Unconfigured().Styled(dependsOnLook)
}

func open(env *platform.Environment) Deps { return Deps{assets: embeddedAssets, config: env.Config} }

// pageType is the media type of pages.
const pageType = "text/html; charset=utf-8"

// assets are the embedded files.
type assets struct {
	// files are the scripts, styles, pictures and texts by their paths.
	files map[string]*frame.Page
	// index is the text of the page.
	index string
}

// embeddedAssets returns the assets of the program. They are read once.
var embeddedAssets = sync.OnceValue(func() *assets {
	all, err := readAssets()
	if err != nil {
		// The files are embedded: this is a broken build.
		panic(fmt.Sprintf("serveconsole: %v", err))
	}
	return all
})

// sameOriginHeader adds the header field with which browsers refuse to load a file of the console into another site.
func sameOriginHeader(more map[string]string) map[string]string {
	more["Cross-Origin-Resource-Policy"] = "same-origin"
	return more
}

func readAssets() (*assets, error) {
	all := &assets{files: map[string]*frame.Page{}}
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
			all.index = string(body)
			continue
		}
		mediaType, known := mediaTypes[path.Ext(name)]
		if !known {
			return nil, fmt.Errorf("the asset %s has no media type", name)
		}
		all.files[root+"/assets/"+name] = &frame.Page{
			MediaType: mediaType, Body: body, Gzipped: gzipped,
			Header: sameOriginHeader(map[string]string{"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}),
		}
	}
	return all, nil
}

// settings are the part of the look that the scripts of the page read. The page contains them, so that they and its policy come from the
// same configuration.
type settings struct {
	Logo      string         `json:"logo,omitempty"`
	SmallLogo string         `json:"smallLogo,omitempty"`
	Styles    []string       `json:"styles,omitempty"`
	Buttons   []theme.Button `json:"buttons,omitempty"`
	Legal     bool           `json:"legal,omitempty"`
}

// iconLink is the beginning of the link to the icon of the page.
const iconLink = `<link rel="icon" href="`

// page returns the document at a path. It names its assets relative to that path, so that it works below every base path: at root itself,
// which has no slash at its end, the folder is part of these names.
func (a *assets) page(at string, looks theme.Look) *frame.Page {
	folder := strings.Repeat("../", max(0, strings.Count(at, "/")-strings.Count(root+"/", "/")))
	if at == root {
		folder = path.Base(root) + "/"
	}
	text := strings.ReplaceAll(a.index, `="assets/`, `="`+folder+`assets/`)
	if before, rest, ok := strings.Cut(text, iconLink); ok && looks.Icon != "" {
		_, after, _ := strings.Cut(rest, `"`)
		text = before + iconLink + html.EscapeString(looks.Icon) + `"` + after
	}
	more := ""
	if looks.Theme != "" {
		more += `<link rel="stylesheet" href="` + folder + `theme.css?` + etagOf(looks.Theme)[:8] + `">` + "\n"
	}
	about := settings{Logo: looks.Logo, SmallLogo: looks.SmallLogo, Styles: looks.Styles, Buttons: looks.Buttons, Legal: looks.Legal != ""}
	if encoded, err := json.Marshal(about); err == nil && string(encoded) != "{}" {
		more += `<meta name="settings" content="` + html.EscapeString(string(encoded)) + `">` + "\n"
	}
	text = strings.Replace(text, "</head>", more+"</head>", 1)
	return &frame.Page{
		MediaType: pageType, Body: []byte(text), ETag: etagOf(text + contentPolicy(looks)),
		Header: sameOriginHeader(map[string]string{
			"Cache-Control": "no-cache", "Vary": "Accept-Encoding",
			"Content-Security-Policy":    contentPolicy(looks),
			"Cross-Origin-Opener-Policy": "same-origin",
			"Permissions-Policy":         "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
			"Referrer-Policy":            "no-referrer",
		}),
	}
}

// etagOf returns the ETag of a text.
func etagOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
