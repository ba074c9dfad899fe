package platformconfig

import "strings"

// namedColours are the names of CSS Color Module Level 4, 6.1, and the two keywords that are colours as well.
const namedColours = ` transparent currentcolor
aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown
burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan
darkgoldenrod darkgray darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred
darksalmon darkseagreen darkslateblue darkslategray darkslategrey darkturquoise darkviolet deeppink
deepskyblue dimgray dimgrey dodgerblue firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold
goldenrod gray green greenyellow grey honeydew hotpink indianred indigo ivory khaki lavender lavenderblush
lawngreen lemonchiffon lightblue lightcoral lightcyan lightgoldenrodyellow lightgray lightgreen lightgrey
lightpink lightsalmon lightseagreen lightskyblue lightslategray lightslategrey lightsteelblue lightyellow
lime limegreen linen magenta maroon mediumaquamarine mediumblue mediumorchid mediumpurple mediumseagreen
mediumslateblue mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin
navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen paleturquoise
palevioletred papayawhip peachpuff peru pink plum powderblue purple rebeccapurple red rosybrown royalblue
saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue slategray slategrey snow
springgreen steelblue tan teal thistle tomato turquoise violet wheat white whitesmoke yellow yellowgreen `

// writtenColour is a colour as # with three, four, six or eight digits, or as rgb() or hsl() with three numbers and perhaps
// an alpha.
var writtenColour = matching(`(?i)^(#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})|` +
	`(rgb|hsl)a?\( *-?[0-9.]+(%|deg|turn|g?rad)?([ ,]+[0-9.]+%?){2}( *[,/] *[0-9.]+%?)? *\))$`)

// isColour accepts the colours of CSS that need no colour space: by number, and by name in any case.
func isColour(value string) bool {
	if writtenColour(value) {
		return true
	}
	for name := range strings.FieldsSeq(namedColours) {
		if strings.EqualFold(name, value) {
			return true
		}
	}
	return false
}
