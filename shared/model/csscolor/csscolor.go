// Package csscolor reads the colors of CSS that need no color space, and computes the contrast between two colors. Its
// results are computed from numbers and contain no part of the input text. Source: Spec 2.7 (uiSettings); CSS Color Module
// Level 4; ADR-0030.
package csscolor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"management.platform.sh/shared/model/lazyregexp"
)

// RGB is an opaque color of sRGB.
type RGB struct{ R, G, B uint8 }

// White and Black are the two colors for text on a colored background.
var (
	White = RGB{255, 255, 255}
	Black = RGB{}
)

// Readable is the minimum contrast for text of normal size. Source: WCAG 2.2, 1.4.3.
const Readable = 4.5

// String returns the color as # with six digits.
func (c RGB) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// luminance is from 0 for black to 1 for white. Source: WCAG 2.2, relative luminance.
func (c RGB) luminance() float64 {
	linear := func(value uint8) float64 {
		share := float64(value) / 255
		if share <= 0.04045 {
			return share / 12.92
		}
		return math.Pow((share+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Contrast returns the contrast of two colors, from 1 to 21. Source: WCAG 2.2, contrast ratio.
func Contrast(a, b RGB) float64 {
	high, low := a.luminance(), b.luminance()
	return (max(high, low) + 0.05) / (min(high, low) + 0.05)
}

// TextOn returns white or black: the color with the higher contrast on a background. The contrast is always at least
// Readable.
func TextOn(background RGB) RGB {
	if Contrast(background, White) >= Contrast(background, Black) {
		return White
	}
	return Black
}

// Valid reports whether a text is a color: # with three, four, six or eight digits, rgb() or hsl() with three numbers and perhaps an
// alpha, a name in any case, transparent or currentcolor.
func Valid(text string) bool {
	_, known := Parse(text)
	return known || strings.EqualFold(text, "currentcolor")
}

// Parse returns a color as it looks on white. False: the text is not a color, or it is currentcolor, whose value depends on
// the element.
func Parse(text string) (RGB, bool) {
	if digits, found := strings.CutPrefix(text, "#"); found {
		return parseHex(digits)
	}
	if found := function().FindStringSubmatch(text); found != nil {
		return parseFunction(found)
	}
	if strings.EqualFold(text, "transparent") {
		return White, true
	}
	fields := strings.Fields(names)
	for i := 0; i < len(fields); i += 2 {
		if strings.EqualFold(fields[i], text) {
			return parseHex(fields[i+1])
		}
	}
	return RGB{}, false
}

func parseHex(digits string) (RGB, bool) {
	if len(digits) == 3 || len(digits) == 4 {
		var long strings.Builder
		for _, digit := range []byte(digits) {
			long.Write([]byte{digit, digit})
		}
		digits = long.String()
	}
	if len(digits) == 6 {
		digits += "ff"
	}
	value, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 8 {
		return RGB{}, false
	}
	share := func(shift uint) float64 { return float64(value>>shift&0xff) / 255 }
	return blendWithWhite([3]float64{share(24), share(16), share(8)}, share(0)), true
}

// function matches rgb() and hsl(), with their parts.
var function = lazyregexp.New(`(?i)^(rgb|hsl)a?\( *(-?[0-9.]+)(%|deg|turn|g?rad)?[ ,]+([0-9.]+)(%?)[ ,]+([0-9.]+)(%?)(?: *[,/] *([0-9.]+)(%?))? *\)$`)

func parseFunction(parts []string) (RGB, bool) {
	var numbers [4]float64
	for i, place := range []int{2, 4, 6, 8} {
		if i == 3 && parts[place] == "" {
			numbers[i] = 1
			continue
		}
		number, err := strconv.ParseFloat(parts[place], 64)
		if err != nil {
			return RGB{}, false
		}
		numbers[i] = number
	}
	alpha := numbers[3]
	if parts[9] == "%" {
		alpha /= 100
	}
	if strings.EqualFold(parts[1], "hsl") {
		turn := map[string]float64{"": 360, "deg": 360, "turn": 1, "rad": 2 * math.Pi, "grad": 400, "%": 100}[strings.ToLower(parts[3])]
		return blendWithWhite(fromHSL(numbers[0]/turn, numbers[1]/100, numbers[2]/100), alpha), true
	}
	var shares [3]float64
	for i, unit := range []string{parts[3], parts[5], parts[7]} {
		whole := 255.0
		if unit == "%" {
			whole = 100
		}
		shares[i] = numbers[i] / whole
	}
	return blendWithWhite(shares, alpha), true
}

// fromHSL returns the shares of red, green and blue. The hue is in turns. Source: CSS Color Module Level 4, 7.1.
func fromHSL(hue, saturation, lightness float64) [3]float64 {
	saturation, lightness = clamp(saturation), clamp(lightness)
	hue = (hue - math.Floor(hue)) * 12
	channel := func(n float64) float64 {
		k := math.Mod(n+hue, 12)
		return lightness - saturation*min(lightness, 1-lightness)*max(-1, min(k-3, 9-k, 1))
	}
	return [3]float64{channel(0), channel(8), channel(4)}
}

func blendWithWhite(shares [3]float64, alpha float64) RGB {
	alpha = clamp(alpha)
	mixed := func(share float64) uint8 { return uint8(math.Round(255 * (clamp(share)*alpha + 1 - alpha))) }
	return RGB{mixed(shares[0]), mixed(shares[1]), mixed(shares[2])}
}

func clamp(share float64) float64 { return max(0, min(1, share)) }

// names are the named colors. Source: CSS Color Module Level 4, 6.1.
const names = `
aliceblue f0f8ff  antiquewhite faebd7  aqua 00ffff  aquamarine 7fffd4  azure f0ffff  beige f5f5dc  bisque ffe4c4
black 000000  blanchedalmond ffebcd  blue 0000ff  blueviolet 8a2be2  brown a52a2a  burlywood deb887
cadetblue 5f9ea0  chartreuse 7fff00  chocolate d2691e  coral ff7f50  cornflowerblue 6495ed  cornsilk fff8dc
crimson dc143c  cyan 00ffff  darkblue 00008b  darkcyan 008b8b  darkgoldenrod b8860b  darkgray a9a9a9
darkgreen 006400  darkgrey a9a9a9  darkkhaki bdb76b  darkmagenta 8b008b  darkolivegreen 556b2f  darkorange ff8c00
darkorchid 9932cc  darkred 8b0000  darksalmon e9967a  darkseagreen 8fbc8f  darkslateblue 483d8b
darkslategray 2f4f4f  darkslategrey 2f4f4f  darkturquoise 00ced1  darkviolet 9400d3  deeppink ff1493
deepskyblue 00bfff  dimgray 696969  dimgrey 696969  dodgerblue 1e90ff  firebrick b22222  floralwhite fffaf0
forestgreen 228b22  fuchsia ff00ff  gainsboro dcdcdc  ghostwhite f8f8ff  gold ffd700  goldenrod daa520  gray 808080
green 008000  greenyellow adff2f  grey 808080  honeydew f0fff0  hotpink ff69b4  indianred cd5c5c  indigo 4b0082
ivory fffff0  khaki f0e68c  lavender e6e6fa  lavenderblush fff0f5  lawngreen 7cfc00  lemonchiffon fffacd
lightblue add8e6  lightcoral f08080  lightcyan e0ffff  lightgoldenrodyellow fafad2  lightgray d3d3d3
lightgreen 90ee90  lightgrey d3d3d3  lightpink ffb6c1  lightsalmon ffa07a  lightseagreen 20b2aa  lightskyblue 87cefa
lightslategray 778899  lightslategrey 778899  lightsteelblue b0c4de  lightyellow ffffe0  lime 00ff00
limegreen 32cd32  linen faf0e6  magenta ff00ff  maroon 800000  mediumaquamarine 66cdaa  mediumblue 0000cd
mediumorchid ba55d3  mediumpurple 9370db  mediumseagreen 3cb371  mediumslateblue 7b68ee  mediumspringgreen 00fa9a
mediumturquoise 48d1cc  mediumvioletred c71585  midnightblue 191970  mintcream f5fffa  mistyrose ffe4e1
moccasin ffe4b5  navajowhite ffdead  navy 000080  oldlace fdf5e6  olive 808000  olivedrab 6b8e23  orange ffa500
orangered ff4500  orchid da70d6  palegoldenrod eee8aa  palegreen 98fb98  paleturquoise afeeee  palevioletred db7093
papayawhip ffefd5  peachpuff ffdab9  peru cd853f  pink ffc0cb  plum dda0dd  powderblue b0e0e6  purple 800080
rebeccapurple 663399  red ff0000  rosybrown bc8f8f  royalblue 4169e1  saddlebrown 8b4513  salmon fa8072
sandybrown f4a460  seagreen 2e8b57  seashell fff5ee  sienna a0522d  silver c0c0c0  skyblue 87ceeb  slateblue 6a5acd
slategray 708090  slategrey 708090  snow fffafa  springgreen 00ff7f  steelblue 4682b4  tan d2b48c  teal 008080
thistle d8bfd8  tomato ff6347  turquoise 40e0d0  violet ee82ee  wheat f5deb3  white ffffff  whitesmoke f5f5f5
yellow ffff00  yellowgreen 9acd32
`
