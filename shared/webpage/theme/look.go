// Package theme decides how the pages of the platform look: it turns uiSettings of the configuration into values that are safe to
// send to a browser. An admin who writes the configuration must not be able to act as the users who open a page, so no setting is
// passed on as it is: colors are computed anew, addresses are checked and become exact sources of a policy, and HTML stays in a
// document of its own. Source: Spec 2.7 (uiSettings); ADR-0030.
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
	// Legal is untrusted HTML from the configuration. It belongs into LegalDocument, never into a page.
	Legal string
	// Button is the color of the main button of a page, and OnButton is the color of the button's text.
	Button, OnButton csscolor.RGB
	// Theme has CSS rules for the console. Empty: none.
	Theme string
	// pictures and sheets are the sources of the pictures and of the style sheets for a policy.
	pictures, sheets []string
}

// Button is a link to another page. Top places it above the content, not below it. End places it at the end of the line.
type Button struct {
	Text string `json:"text"`
	Link string `json:"link"`
	Icon string `json:"icon,omitempty"`
	Top  bool   `json:"top,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// maxButtons bounds the buttons that are shown. maxSourceBytes bounds the size of all sources of a policy, in bytes: gateways
// refuse responses with large headers. Buttons and sources beyond these bounds are left out.
const (
	maxButtons     = 20
	maxSourceBytes = 3 << 10
)

// primary is the color of buttons on pages of the sign-in, if the configuration has no such color.
var primary = csscolor.RGB{R: 0x1b, G: 0x4f, B: 0xd8}

// New returns the look of a configuration. ui may be nil.
func New(ui *model.ConfigUISettings) Look {
	look := Look{Button: primary, OnButton: csscolor.White}
	if ui == nil {
		return look
	}
	if color, ok := csscolor.Parse(ui.PrimaryColor); ok {
		look.Button, look.OnButton = color, csscolor.TextOn(color)
	}
	look.Theme = cssRules(ui)
	remaining := maxSourceBytes
	admit := func(address string, sources *[]string) string {
		address, source := permittedSource(ui.ExternalURLs, address)
		if source == "" || slices.Contains(*sources, source) {
			return address
		}
		if remaining -= len(source) + 1; remaining < 0 {
			return ""
		}
		*sources = append(*sources, source)
		return address
	}
	look.Logo = admit(ui.LogoURL, &look.pictures)
	look.SmallLogo = admit(ui.SmallLogoURL, &look.pictures)
	look.Icon = admit(ui.FaviconURL, &look.pictures)
	for _, address := range ui.CustomCSS {
		if address = admit(address, &look.sheets); address != "" {
			look.Styles = append(look.Styles, address)
		}
	}
	for _, button := range ui.NavBarButtons {
		link := safeLink(button.Link)
		if link == "" || len(look.Buttons) == maxButtons {
			continue
		}
		look.Buttons = append(look.Buttons, Button{
			Text: cmp.Or(strings.TrimSpace(button.Text), link), Link: link, Icon: admit(button.Icon, &look.pictures),
			Top: strings.HasPrefix(button.Position, "Top"), End: !strings.HasSuffix(button.Position, "Start"),
		})
	}
	if strings.TrimSpace(ui.LegalTemplate) != "" {
		look.Legal = ui.LegalTemplate
	}
	return look
}

// Pictures returns the sources of the pictures, for img-src of a policy.
func (l Look) Pictures() []string { return l.pictures }

// Sheets returns the sources of the style sheets, for style-src of a policy.
func (l Look) Sheets() []string { return l.sheets }

var hostName = lazyregexp.New(`^[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:[0-9]{1,5})?$`)

// filePath matches the path of one file that a policy can name. It does not match a folder, which would permit everything in the
// folder, nor characters that end the rule of the policy.
var filePath = lazyregexp.New(`^/([A-Za-z0-9._~!$&()*+=:@/-]|%[0-9A-Fa-f]{2})*([A-Za-z0-9._~!$&()*+=:@-]|%[0-9A-Fa-f]{2})$`)

// permittedSource returns the address that a page may load, and the source that permits exactly this address. Empty: the page may
// not load the address. The address must be absolute, with https, without a user and without dots as folders.
func permittedSource(external *model.ExternalURLs, reference string) (address, source string) {
	parsed, err := url.Parse(reference)
	if err != nil || parsed.Scheme != "https" || parsed.User != nil || !hostName().MatchString(parsed.Host) || !plainPath(parsed.Path) {
		return "", ""
	}
	path := strings.NewReplacer("'", "%27", ",", "%2C", ";", "%3B").Replace(parsed.EscapedPath())
	if !filePath().MatchString(path) || !isPermitted(external, parsed) {
		return "", ""
	}
	source = "https://" + strings.ToLower(parsed.Host) + path
	// The query is part of the address and not of the source: policies do not compare queries.
	query := url.URL{RawQuery: parsed.Query().Encode()}
	return source + query.String(), source
}

// plainPath reports whether a path has no segment "." or "..", which browsers resolve.
func plainPath(path string) bool {
	return !slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), func(part string) bool {
		return part == "." || part == ".."
	})
}

// isPermitted reports whether externalURLs permits an address: block is not set, or an entry of allow is the address, or a folder
// or host above it. Entries that are names of modules permit no address.
func isPermitted(external *model.ExternalURLs, target *url.URL) bool {
	if external == nil || !external.Block {
		return true
	}
	return slices.ContainsFunc(external.Allow, func(entry string) bool {
		allowed, err := url.Parse(entry)
		if err != nil || allowed.Scheme != target.Scheme || !strings.EqualFold(allowed.Host, target.Host) {
			return false
		}
		return target.Path == allowed.Path || strings.HasPrefix(target.Path, strings.TrimSuffix(allowed.Path, "/")+"/")
	})
}

// safeLink returns the target of a link: an address with https or http, a mailto: address, or a path of this host. Empty: the
// link is not one of these.
func safeLink(given string) string {
	parsed, err := url.Parse(given)
	switch {
	case err != nil:
		return ""
	case (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "" && parsed.User == nil, parsed.Scheme == "mailto":
		return parsed.String()
	case parsed.Scheme == "" && parsed.Host == "" && strings.HasPrefix(given, "/") && !strings.HasPrefix(given, "//") && !strings.Contains(given, `\`):
		return parsed.String()
	}
	return ""
}

// Backgrounds of the console on which texts have the accent color. A test compares them with the style sheet of the console.
var (
	lightGrounds = []string{"#ffffff", "#f6f7f9", "#eef1f8"}
	darkGrounds  = []string{"#1c1f26", "#14161b", "#262a34"}
)

// The built-in accents of the console.
const lightAccent, darkAccent = "#2f4ac2", "#9db0ff"

// cssRules returns the rules for the colors of a configuration. A color that is not readable as text is not used for texts: only
// the line below the bar has it, so that people recognize the platform.
func cssRules(ui *model.ConfigUISettings) string {
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
		if isReadable(accent, lightGrounds) {
			light = accent.String()
		}
		if isReadable(accent, darkGrounds) {
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
	if bar, ok := csscolor.Parse(ui.SidebarColor); ok {
		text := csscolor.TextOn(bar).String()
		set("bar", bar.String())
		set("on-bar", text)
		set("bar-quiet", text)
		set("bar-current", text)
		set("on-bar-current", bar.String())
	}
	if background, ok := csscolor.Parse(ui.LogoBackgroundColor); ok {
		set("logo", background.String())
		set("on-logo", csscolor.TextOn(background).String())
		set("logo-room", ".2rem .5rem")
	}
	if len(rules) == 0 {
		return ""
	}
	return ":root{" + strings.Join(rules, ";") + "}\n"
}

func isReadable(text csscolor.RGB, grounds []string) bool {
	return !slices.ContainsFunc(grounds, func(ground string) bool {
		background, ok := csscolor.Parse(ground)
		return !ok || csscolor.Contrast(text, background) < csscolor.Readable
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
