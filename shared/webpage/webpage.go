// Package webpage makes the few HTML pages that the platform shows to people: a title, some text, and at most one form. A page
// runs no script, loads nothing but the logo and the legal notice in a frame of its own, cannot be framed, and shows every text as
// text. Source: ADR-0031.
//
// It builds the text itself: the templates of the standard library look up methods by name (ADR-0010).
package webpage

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/webpage/theme"
)

// MediaType is the media type of a page.
const MediaType = "text/html; charset=utf-8"

// Policy is the Content-Security-Policy of answers that are no pages.
const Policy = "default-src 'none'; frame-ancestors 'none'"

// Page is one page. All texts are plain texts.
type Page struct {
	// Title is the heading.
	Title string
	// Text has the paragraphs below the heading.
	Text []string
	// Facts are names with values, such as the account that signs in.
	Facts []Fact
	// Action is the path to which the form is sent. Empty: the page has no form.
	Action string
	// Hidden are fields of the form that the page does not show.
	Hidden []Fact
	// Fields are the fields of the form that the person fills in.
	Fields []Field
	// Buttons send the form.
	Buttons []Button
	// Links lead to other pages of the platform.
	Links []Link
	// Target is the origin of another server to which the answer to the form redirects, such as http://127.0.0.1:4711. Empty:
	// none.
	Target string
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// Link is a link with its text.
type Link struct{ Label, Address string }

// Field is a text that the person must fill in. Type is the type of the input element, such as password. Autocomplete tells the
// browser what it may offer. Value is the initial text.
type Field struct{ Name, Label, Type, Autocomplete, Value string }

// Button is a button of a form. A form that the button sends has a field with the name and the value.
type Button struct{ Name, Value, Label string }

const style = `body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f5f6f8;color:#1c2430}` +
	`main{max-width:34rem;margin:3rem auto;padding:2rem;background:#fff;border-radius:8px}` +
	`h1{font-size:1.4rem;margin:0 0 1rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dt{color:#566}` +
	`label{display:block;margin:0 0 1rem}input{display:block;box-sizing:border-box;width:100%;font:inherit;padding:.5rem;border:1px solid #889;border-radius:6px}` +
	`dd{margin:0;overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.25rem;margin-right:.75rem;border-radius:6px;border:1px solid #889;background:#fff}` +
	`button:first-of-type{background:var(--primary);color:var(--on-primary);border-color:var(--primary)}img{max-width:100%;max-height:3rem}` +
	`iframe{box-sizing:border-box;width:100%;height:9rem;margin:1rem 0 0;border:1px solid #889;border-radius:6px}`

// Render returns the HTML of a page and its Content-Security-Policy. UI has the settings of the configuration; nil: none. Legal
// is the address of the legal notice, which a page shows if the settings have one.
func (p Page) Render(ui *model.ConfigUISettings, legal string) (text []byte, policy string) {
	looks := theme.New(ui)
	css := ":root{--primary:" + looks.Button.String() + ";--on-primary:" + looks.OnButton.String() + "}" + style
	sum := sha256.Sum256([]byte(css))
	rules := []string{
		"default-src 'none'", "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		"base-uri 'none'", "frame-ancestors 'none'",
	}
	var out strings.Builder
	write := func(parts ...string) {
		for _, part := range parts {
			out.WriteString(part)
		}
	}
	escape := html.EscapeString
	write(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
		`<title>`, escape(p.Title), `</title><style>`, css, `</style>`)
	if looks.Icon != "" {
		write(`<link rel="icon" href="`, escape(looks.Icon), `">`)
	}
	write(`</head><body><main>`)
	if len(looks.Pictures()) > 0 {
		rules = append(rules, "img-src "+strings.Join(looks.Pictures(), " "))
	}
	if looks.Logo != "" {
		write(`<img src="`, escape(looks.Logo), `" alt="">`)
	}
	write(`<h1>`, escape(p.Title), `</h1>`)
	for _, paragraph := range p.Text {
		write(`<p>`, escape(paragraph), `</p>`)
	}
	if len(p.Facts) > 0 {
		write(`<dl>`)
		for _, fact := range p.Facts {
			write(`<dt>`, escape(fact.Name), `</dt><dd>`, escape(fact.Value), `</dd>`)
		}
		write(`</dl>`)
	}
	if p.Action == "" {
		rules = append(rules, "form-action 'none'")
	} else {
		rules = append(rules, strings.TrimSpace("form-action 'self' "+p.Target))
		write(`<form method="post" action="`, escape(p.Action), `">`)
		for _, field := range p.Hidden {
			write(`<input type="hidden" name="`, escape(field.Name), `" value="`, escape(field.Value), `">`)
		}
		for _, field := range p.Fields {
			write(`<label>`, escape(field.Label), `<input name="`, escape(field.Name), `" type="`, escape(field.Type),
				`" autocomplete="`, escape(field.Autocomplete), `" value="`, escape(field.Value), `" required></label>`)
		}
		for _, button := range p.Buttons {
			write(`<button name="`, escape(button.Name), `" value="`, escape(button.Value), `">`, escape(button.Label), `</button>`)
		}
		write(`</form>`)
	}
	for _, link := range p.Links {
		write(`<p><a href="`, escape(link.Address), `">`, escape(link.Label), `</a></p>`)
	}
	if looks.Legal != "" {
		rules = append(rules, "frame-src 'self'")
		write(`<iframe title="`, escape(theme.LegalTitle), `" sandbox="`, theme.Frame, `" src="`, escape(legal), `"></iframe>`)
	}
	write("</main></body></html>\n")
	return []byte(out.String()), strings.Join(rules, "; ")
}
