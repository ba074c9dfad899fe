// Package theme says how the pages of the platform look: it turns uiSettings of the configuration into what a browser may be given.
// Whoever writes the configuration may not act as everybody who opens a page, so nothing of a setting is passed on as it is:
// colors are computed anew, addresses are checked and become exact sources of a policy, and HTML stays in a document of its own.
// Source: Spec 2.7 (uiSettings); ADR-0030.
package theme

import (
	"cmp"
	"html"
	"net/url"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/csscolor"
	"management.platform.sh/shared/model/lazyregexp"
)

// Look is how pages look. The zero value is the built-in look.
type Look struct {
	// Logo, SmallLogo and Icon are addresses of pictures. Empty: the built-in picture.
	Logo, SmallLogo, Icon string
	// Buttons are links to other pages.
	Buttons []Button
	// Styles are addresses of style sheets.
	Styles []string
	// Legal is HTML of others. It belongs into LegalDocument, never into a page.
	Legal string
	// Button is the color of the main button of a page, and OnButton that of its text.
	Button, OnButton csscolor.RGB
	// Theme are rules of CSS for the console. Empty: none.
	Theme string
	// pictures and sheets are the sources of Pictures and Styles for a policy.
	pictures, sheets []string
}

// Button is a link to another page. Top: it is above the content, not below it. End: it is at the end of the line.
type Button struct {
	Text string `json:"text"`
	Link string `json:"link"`
	Icon string `json:"icon,omitempty"`
	Top  bool   `json:"top,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// mostButtons is the number of buttons that are shown. mostSources is the size of all sources of a policy, in bytes: gateways refuse
// responses whose header is large. What exceeds them is left out.
const (
	mostButtons = 20
	mostSources = 3 << 10
)

// primary is the color of buttons on pages of the sign-in, if the configuration has none.
var primary = csscolor.RGB{R: 0x1b, G: 0x4f, B: 0xd8}

// Of returns the look of a configuration. ui may be nil.
func Of(ui *model.ConfigUISettings) Look {
	found := Look{Button: primary, OnButton: csscolor.White}
	if ui == nil {
		return found
	}
	if color, known := csscolor.Parse(ui.PrimaryColor); known {
		found.Button, found.OnButton = color, csscolor.TextOn(color)
	}
	found.Theme = theme(ui)
	left := mostSources
	admit := func(address string, sources *[]string) string {
		address, source := resource(ui.ExternalURLs, address)
		if source == "" || slices.Contains(*sources, source) {
			return address
		}
		if left -= len(source) + 1; left < 0 {
			return ""
		}
		*sources = append(*sources, source)
		return address
	}
	found.Logo = admit(ui.LogoURL, &found.pictures)
	found.SmallLogo = admit(ui.SmallLogoURL, &found.pictures)
	found.Icon = admit(ui.FaviconURL, &found.pictures)
	for _, address := range ui.CustomCSS {
		if address = admit(address, &found.sheets); address != "" {
			found.Styles = append(found.Styles, address)
		}
	}
	for _, button := range ui.NavBarButtons {
		link := safeLink(button.Link)
		if link == "" || len(found.Buttons) == mostButtons {
			continue
		}
		found.Buttons = append(found.Buttons, Button{
			Text: cmp.Or(strings.TrimSpace(button.Text), link), Link: link, Icon: admit(button.Icon, &found.pictures),
			Top: strings.HasPrefix(button.Position, "Top"), End: !strings.HasSuffix(button.Position, "Start"),
		})
	}
	if strings.TrimSpace(ui.LegalTemplate) != "" {
		found.Legal = ui.LegalTemplate
	}
	return found
}

// Pictures returns the sources of the pictures, for img-src of a policy.
func (l Look) Pictures() []string { return l.pictures }

// Sheets returns the sources of the style sheets, for style-src of a policy.
func (l Look) Sheets() []string { return l.sheets }

var host = lazyregexp.New(`^[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:[0-9]{1,5})?$`)

// file matches the path of one file as a policy can name it: not a folder, which would be everything in it, and nothing that ends the
// rule that it stands in.
var file = lazyregexp.New(`^/([A-Za-z0-9._~!$&()*+=:@/-]|%[0-9A-Fa-f]{2})*([A-Za-z0-9._~!$&()*+=:@-]|%[0-9A-Fa-f]{2})$`)

// resource returns the address that a page may load, and the source that permits exactly that. Empty: the page may not load it. The
// address must be absolute, with https, without a user and without dots as folders.
func resource(external *model.ExternalURLs, given string) (address, source string) {
	at, err := url.Parse(given)
	if err != nil || at.Scheme != "https" || at.User != nil || !host().MatchString(at.Host) || !plainPath(at.Path) {
		return "", ""
	}
	path := strings.NewReplacer("'", "%27", ",", "%2C", ";", "%3B").Replace(at.EscapedPath())
	if !file().MatchString(path) || !permits(external, at) {
		return "", ""
	}
	source = "https://" + strings.ToLower(at.Host) + path
	// The query is part of the address and not of the source: a policy compares no queries.
	query := url.URL{RawQuery: at.Query().Encode()}
	return source + query.String(), source
}

// plainPath reports whether a path has no folder of dots, which browsers resolve.
func plainPath(path string) bool {
	return !slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), func(part string) bool {
		return part == "." || part == ".."
	})
}

// permits reports whether externalURLs permits an address: it does not block, or one of its exceptions is the address or a folder or
// host above it. Names of modules permit none.
func permits(external *model.ExternalURLs, at *url.URL) bool {
	if external == nil || !external.Block {
		return true
	}
	return slices.ContainsFunc(external.Allow, func(entry string) bool {
		allowed, err := url.Parse(entry)
		if err != nil || allowed.Scheme != at.Scheme || !strings.EqualFold(allowed.Host, at.Host) {
			return false
		}
		return at.Path == allowed.Path || strings.HasPrefix(at.Path, strings.TrimSuffix(allowed.Path, "/")+"/")
	})
}

// safeLink returns the target of a link: an address with https or http, a mailto: address, or a path of this host. Empty: it is none
// of them.
func safeLink(given string) string {
	at, err := url.Parse(given)
	switch {
	case err != nil:
		return ""
	case (at.Scheme == "https" || at.Scheme == "http") && at.Host != "" && at.User == nil, at.Scheme == "mailto":
		return at.String()
	case at.Scheme == "" && at.Host == "" && strings.HasPrefix(given, "/") && !strings.HasPrefix(given, "//") && !strings.Contains(given, `\`):
		return at.String()
	}
	return ""
}

// Backgrounds of the console, on which accents are texts. A test compares them with its style sheet.
var (
	lightGrounds = []string{"#ffffff", "#f6f7f9", "#eef1f8"}
	darkGrounds  = []string{"#1c1f26", "#14161b", "#262a34"}
)

// The built-in accents of the console.
const lightAccent, darkAccent = "#2f4ac2", "#9db0ff"

// theme returns the rules for the colors of a configuration. A color that cannot be read as a text stays out of texts: it is in the
// line below the bar alone, as a sign of which platform this is.
func theme(ui *model.ConfigUISettings) string {
	var rules []string
	set := func(name, value string) { rules = append(rules, "--"+name+":"+value) }
	main, hasMain := csscolor.Parse(ui.PrimaryColor)
	accent, hasAccent := csscolor.Parse(cmp.Or(ui.AccentColor, ui.PrimaryColor))
	if hasMain {
		set("button", main.String())
		set("on-button", csscolor.TextOn(main).String())
	}
	if hasAccent {
		light, dark := lightAccent, darkAccent
		if readable(accent, lightGrounds) {
			light = accent.String()
		}
		if readable(accent, darkGrounds) {
			dark = accent.String()
		}
		set("accent", "light-dark("+light+","+dark+")")
	}
	if hasMain || hasAccent {
		sign := accent
		if hasMain {
			sign = main
		}
		set("sign", sign.String())
		set("sign-size", "4px")
	}
	if bar, known := csscolor.Parse(ui.SidebarColor); known {
		text := csscolor.TextOn(bar).String()
		set("bar", bar.String())
		set("on-bar", text)
		set("bar-quiet", text)
		set("bar-current", text)
		set("on-bar-current", bar.String())
	}
	if behind, known := csscolor.Parse(ui.LogoBackgroundColor); known {
		set("logo", behind.String())
		set("on-logo", csscolor.TextOn(behind).String())
		set("logo-room", ".2rem .5rem")
	}
	if len(rules) == 0 {
		return ""
	}
	return ":root{" + strings.Join(rules, ";") + "}\n"
}

func readable(text csscolor.RGB, grounds []string) bool {
	return !slices.ContainsFunc(grounds, func(ground string) bool {
		on, known := csscolor.Parse(ground)
		return !known || csscolor.Contrast(text, on) < csscolor.Readable
	})
}

// Frame is the attribute sandbox of a frame that shows LegalDocument, and part of LegalPolicy. Scripts, forms and redirects do
// nothing there. A link opens a window of its own.
const Frame = "allow-popups allow-popups-to-escape-sandbox"

// LegalPolicy is the Content-Security-Policy of LegalDocument: it runs and loads nothing, and pages of the same host may frame it.
const LegalPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox " + Frame

// LegalTitle is the name of a frame that shows LegalDocument.
const LegalTitle = "Legal notice"

// LegalDocument returns the legal notice as a document of its own.
func (l Look) LegalDocument() string {
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>` + html.EscapeString(LegalTitle) + `</title><base target="_blank">` +
		`<style>body{font:14px/1.5 system-ui,sans-serif;margin:.75rem;background:#fff;color:#1b2030;overflow-wrap:anywhere}</style></head><body>` + l.Legal + "</body></html>\n"
}
