package theme

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/csscolor"
)

// For each address of a picture or a style sheet, a page may load exactly one file. An address cannot permit anything else.
// Source: ADR-0030.
func TestResources(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://cdn.example/logo.png":            "https://cdn.example/logo.png",
		"https://CDN.example:8443/a/b.svg":        "https://cdn.example:8443/a/b.svg",
		"https://cdn.example/a%20b.png":           "https://cdn.example/a%20b.png",
		"https://cdn.example/a;b,c'd.png":         "https://cdn.example/a%3Bb%2Cc%27d.png",
		"https://cdn.example/logo.png?v=2":        "https://cdn.example/logo.png",
		"https://cdn.example/logo.png#x":          "https://cdn.example/logo.png",
		"https://cdn.example/":                    "",
		"https://cdn.example":                     "",
		"https://cdn.example/folder/":             "",
		"https://*/logo.png":                      "",
		"https://*.example/logo.png":              "",
		"https://user:word@cdn.example/logo.png":  "",
		"https://cdn.example/a/../b.png":          "",
		"https://cdn.example/a/%2e%2e/b.png":      "",
		"https://cdn.example/a%5c..%5cb.png":      "",
		"https://cdn.example; script-src *":       "",
		"https://cdn.example;/logo.png":           "",
		"https://cdn.example/x.png; script-src *": "https://cdn.example/x.png%3B%20script-src%20%2A",
		"http://cdn.example/logo.png":             "",
		"//cdn.example/logo.png":                  "",
		"/logo.png":                               "",
		"data:image/svg+xml,<svg/>":               "",
		"javascript:alert(1)":                     "",
		"https://[::1]/logo.png":                  "",
		"https://cdn.example/\nlogo.png":          "",
		"":                                        "",
	} {
		address, source := permittedSource(nil, given)
		if source != want || (address == "") != (want == "") || !strings.HasPrefix(address, source) {
			t.Errorf("%q is %q by %q; want %q", given, address, source, want)
		}
		if strings.ContainsAny(source, " ;,'\"\n") {
			t.Errorf("%q ends its rule", source)
		}
	}
	if address, _ := permittedSource(nil, `https://cdn.example/x.css?a="><script>`); strings.ContainsAny(address, `"<>`) {
		t.Error(address)
	}
}

// Addresses that externalURLs does not permit are left out. Source: Spec 2.7; ADR-0030.
func TestExternal(t *testing.T) {
	t.Parallel()
	external := &model.ExternalURLs{Block: true, Allow: []string{"vcluster", "https://one.example/logo.png", "https://two.example/brand", "https://three.example", "http://four.example"}}
	for given, want := range map[string]bool{
		"https://one.example/logo.png": true, "https://ONE.example/logo.png": true, "https://one.example/logo.png2": false, "https://one.example/other.png": false,
		"https://two.example/brand/a.png": true, "https://two.example/brandy/a.png": false, "https://three.example/any/where.png": true,
		"https://evil.three.example/x.png": false, "https://three.example.evil/x.png": false, "https://three.example:444/x.png": false, "https://vcluster/x.png": false,
		"https://four.example/x.png": false, "https://evil.example/x.png": false,
	} {
		if _, source := permittedSource(external, given); (source != "") != want {
			t.Errorf("%s: %q", given, source)
		}
	}
	ui := &model.ConfigUISettings{
		LogoURL: "https://evil.example/logo.png", FaviconURL: "https://evil.example/icon.png", CustomCSS: []string{"https://evil.example/x.css"},
		NavBarButtons: []model.NavBarButton{{Text: "Wiki", Link: "https://wiki.example", Icon: "https://evil.example/wiki.png"}},
		ExternalURLs:  &model.ExternalURLs{Block: true},
	}
	found := New(ui)
	if found.Logo+found.Icon != "" || len(found.Styles)+len(found.Pictures())+len(found.Sheets()) > 0 {
		t.Errorf("%+v", found)
	}
	if want := []Button{{Text: "Wiki", Link: "https://wiki.example", End: true}}; !reflect.DeepEqual(found.Buttons, want) {
		t.Errorf("%+v", found.Buttons)
	}
}

// A button leads to a page, and cannot run a script.
func TestLinks(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://wiki.example/a?b=c#d": "https://wiki.example/a?b=c#d", "http://wiki.example": "http://wiki.example", "mailto:help@example.com": "mailto:help@example.com", "/docs": "/docs",
		"javascript:alert(1)": "", "JavaScript:alert(1)": "", " javascript:alert(1)": "", "java\tscript:alert(1)": "", "data:text/html,x": "", "vbscript:x": "", "file:///etc/passwd": "",
		"//evil.example": "", "///evil.example": "", `/\evil.example`: "", "docs": "", "": "", "https:javascript:alert(1)": "", "https://user@evil.example": "", "blob:https://x": "",
	} {
		if got := safeLink(given); got != want {
			t.Errorf("%q leads to %q; want %q", given, got, want)
		}
	}
	found := New(&model.ConfigUISettings{NavBarButtons: []model.NavBarButton{
		{Text: "a", Link: "/a", Position: "TopStart"}, {Link: "/b", Position: "TopEnd"}, {Text: " c ", Link: "/c", Position: "BottomStart"}, {Text: "d", Link: "/d"}, {Text: "e", Link: "javascript:e"}, {Text: "f"},
	}}).Buttons
	want := []Button{{Text: "a", Link: "/a", Top: true}, {Text: "/b", Link: "/b", Top: true, End: true}, {Text: "c", Link: "/c"}, {Text: "d", Link: "/d", End: true}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("%+v", found)
	}
	if many := New(&model.ConfigUISettings{NavBarButtons: make([]model.NavBarButton, 5)}); len(many.Buttons) != 0 {
		t.Errorf("%+v", many.Buttons)
	}
	all := make([]model.NavBarButton, 100)
	for i := range all {
		all[i] = model.NavBarButton{Link: "/x", Icon: "https://cdn.example/" + strings.Repeat("x", 100+i)}
	}
	many := New(&model.ConfigUISettings{NavBarButtons: all})
	if size := len(strings.Join(many.Pictures(), " ")); len(many.Buttons) != maxButtons || size == 0 || size > maxSourceBytes {
		t.Errorf("%d buttons, %d bytes", len(many.Buttons), size)
	}
}

// Colors of the configuration become rules that cannot end the rule around them, and texts with these colors are readable. A
// color that is not readable is not used for texts. Source: ADR-0030; WCAG 2.2, 1.4.3.
func TestTheme(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		about string
		ui    model.ConfigUISettings
		want  string
	}{
		{"nothing", model.ConfigUISettings{}, ""},
		{"a break out of the rule", model.ConfigUISettings{PrimaryColor: "red}*{background:url(//evil.example)", SidebarColor: "url(//evil.example)", AccentColor: "red;--x:1", LogoBackgroundColor: "</style>"}, ""},
		{"currentcolor", model.ConfigUISettings{PrimaryColor: "currentcolor"}, ""},
		{
			"a dark color", model.ConfigUISettings{PrimaryColor: "navy"},
			":root{--button:#000080;--on-button:#ffffff;--accent:light-dark(#000080,#9db0ff);--sign:#000080;--sign-size:4px}\n",
		},
		{
			"a light color", model.ConfigUISettings{PrimaryColor: "yellow"},
			":root{--button:#ffff00;--on-button:#000000;--accent:light-dark(#2f4ac2,#ffff00);--sign:#ffff00;--sign-size:4px}\n",
		},
		{
			"a color that can be read nowhere", model.ConfigUISettings{AccentColor: "#808080"},
			":root{--accent:light-dark(#2f4ac2,#9db0ff);--sign:#808080;--sign-size:4px}\n",
		},
		{
			"both", model.ConfigUISettings{PrimaryColor: "orange", AccentColor: "rgb(0 80 0)"},
			":root{--button:#ffa500;--on-button:#000000;--accent:light-dark(#005000,#9db0ff);--sign:#ffa500;--sign-size:4px}\n",
		},
		{
			"the bar", model.ConfigUISettings{SidebarColor: "#202040"},
			":root{--bar:#202040;--on-bar:#ffffff;--bar-quiet:#ffffff;--bar-current:#ffffff;--on-bar-current:#202040}\n",
		},
		{"the logo", model.ConfigUISettings{LogoBackgroundColor: "white"}, ":root{--logo:#ffffff;--on-logo:#000000;--logo-room:.2rem .5rem}\n"},
	} {
		if got := New(&one.ui).Theme; got != one.want {
			t.Errorf("%s: %s", one.about, got)
		}
	}
	if found := New(&model.ConfigUISettings{PrimaryColor: "yellow"}); found.Button.String() != "#ffff00" || found.OnButton != csscolor.Black {
		t.Errorf("%+v", found)
	}
	if found := New(nil); found.Button != primary || csscolor.Contrast(found.Button, found.OnButton) < csscolor.Readable {
		t.Errorf("%+v", found)
	}
}

// The backgrounds in this package are the backgrounds of the console's style sheet.
func TestGrounds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../functions/serveconsole/web/app.css")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"paper", "ground", "hover"} {
		if rule := "--" + name + ": light-dark(" + lightGrounds[i] + ", " + darkGrounds[i] + ");"; !strings.Contains(string(text), rule) {
			t.Errorf("app.css has no %s", rule)
		}
	}
	if rule := "--accent: light-dark(" + lightAccent + ", " + darkAccent + ");"; !strings.Contains(string(text), rule) {
		t.Errorf("app.css has no %s", rule)
	}
}
