package csscolor

import (
	"math"
	"testing"
)

// Every form of a color is read. A text that only looks like a color is refused. Source: CSS Color Module Level 4.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#1f6feb": "#1f6feb", "#FFF": "#ffffff", "#0000": "#ffffff", "#00000080": "#7f7f7f", "#f008": "#ff7777",
		"teal": "#008080", "RebeccaPurple": "#663399", "yellowgreen": "#9acd32", "aliceblue": "#f0f8ff", "transparent": "#ffffff",
		"rgb(255,0,0)": "#ff0000", "rgb( 0 128 0 / 50% )": "#80c080", "rgba(0, 0, 255, .5)": "#8080ff", "rgb(100% 0% 0%)": "#ff0000", "rgb(300, 0, 0)": "#ff0000",
		"hsl(120deg 100% 25%)": "#008000", "hsl(0.5turn, 100%, 50%)": "#00ffff", "hsl(-120, 100%, 50%)": "#0000ff", "hsla(240 100% 50% / 1)": "#0000ff", "hsl(200grad 100% 50%)": "#00ffff",
	} {
		got, known := Parse(text)
		if !known || got.String() != want || !Valid(text) {
			t.Errorf("%s is %s, %t; want %s", text, got, known, want)
		}
	}
	for _, text := range []string{
		"", "#", "#12", "#12345", "#1234567", "#gggggg", "#+12345", "nocolor", "red;", "red}*{x:url(//evil.example)", "rgb(1,2)", "rgb(1,2,3", "rgb(1..2,2,3)",
		"url(//evil.example)", "var(--x)", "expression(1)", "#fff}", "rgb(1,2,3);color:red", "aliceblue f0f8ff", "f0f8ff", "red\n", " red",
	} {
		if got, known := Parse(text); known || Valid(text) {
			t.Errorf("%q is %s", text, got)
		}
	}
	if _, known := Parse("currentcolor"); known || !Valid("CurrentColor") {
		t.Error("currentcolor has no value of its own, and is a color")
	}
}

// Contrast is computed as the guidelines define it. White or black is readable on every color. Source: WCAG 2.2, 1.4.3.
func TestContrast(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b string
		want float64
	}{{"#000", "#fff", 21}, {"#fff", "#fff", 1}, {"#777", "#fff", 4.48}, {"#767676", "#fff", 4.54}, {"#f00", "#fff", 4.0}, {"#00f", "#fff", 8.59}} {
		a, _ := Parse(row.a)
		b, _ := Parse(row.b)
		if got := Contrast(a, b); math.Abs(got-row.want) > 0.01 || got != Contrast(b, a) {
			t.Errorf("%s on %s: %.2f", row.a, row.b, got)
		}
	}
	for value := range 1 << 12 {
		background := RGB{uint8(value >> 8 * 17), uint8(value >> 4 & 15 * 17), uint8(value & 15 * 17)}
		if text := TextOn(background); Contrast(background, text) < Readable {
			t.Errorf("%s on %s", text, background)
		}
	}
}
