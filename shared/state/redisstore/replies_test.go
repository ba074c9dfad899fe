package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The replies of a Redis pass. A reply that would make the library allocate without a bound is refused before its head
// is complete: in one piece, and byte by byte. Source: ADR-0047.
func TestReplyBounds(t *testing.T) {
	t.Parallel()
	const most = 100_000
	nested := func(depth int) string { return strings.Repeat("*1\r\n", depth) + ":1\r\n" }
	for about, row := range map[string]struct {
		replies string
		refused bool
	}{
		"simple values":           {"+OK\r\n-ERR no\r\n:5\r\n_\r\n,1.5\r\n#t\r\n(123\r\n", false},
		"texts":                   {"$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n=7\r\ntxt:abc\r\n!3\r\nERR\r\n", false},
		"arrays":                  {"*2\r\n$1\r\na\r\n*0\r\n*-1\r\n%1\r\n+a\r\n:1\r\n~1\r\n:1\r\n>2\r\n+a\r\n+b\r\n", false},
		"many replies":            {strings.Repeat("$50000\r\n"+strings.Repeat("x", 50_000)+"\r\n", 5), false},
		"the deepest":             {nested(maxReplyDepth), false},
		"too deep":                {nested(maxReplyDepth + 1), true},
		"a length of a terabyte":  {"$1099511627776\r\n", true},
		"a length above all":      {"$99999999999999999999999\r\n", true},
		"a long array":            {"*2147483647\r\n", true},
		"a very long array":       {"*1099511627776\r\n", true},
		"a long map":              {fmt.Sprintf("%%%d\r\n", maxReplyElements/2+1), true},
		"a very long map":         {"%9223372036854775807\r\n", true},
		"a long set":              {"~2147483647\r\n", true},
		"a long push":             {">2147483647\r\n", true},
		"many arrays":             {"*4\r\n" + strings.Repeat(fmt.Sprintf("*%d\r\n", maxReplyElements/3), 3), true},
		"many texts":              {"*3\r\n" + strings.Repeat("$50000\r\n"+strings.Repeat("x", 50_000)+"\r\n", 3), true},
		"many lines":              {"*100000\r\n" + strings.Repeat("+abc\r\n", 100_000), true},
		"a negative length":       {"$-2\r\n", true},
		"no length":               {"$\r\n", true},
		"a streamed text":         {"$?\r\n", true},
		"another type":            {"?1\r\n", true},
		"nothing":                 {"\r\n", true},
		"a line without an end":   {"+" + strings.Repeat("x", maxReplyLine), true},
		"a length without an end": {"$" + strings.Repeat("0", maxReplyLine), true},
	} {
		for _, step := range []int{len(row.replies), 1, 7} {
			bounds := &replyBounds{most: most}
			var err error
			for rest := row.replies; rest != "" && err == nil; {
				n := min(step, len(rest))
				err = bounds.follow([]byte(rest[:n]))
				rest = rest[n:]
			}
			if (err != nil) != row.refused || err != nil && !errors.Is(err, errReply) {
				t.Errorf("%s, %d bytes at a time: %v", about, step, err)
			}
			if err != nil && bounds.follow([]byte("+OK\r\n")) == nil {
				t.Errorf("%s: what follows is let through", about)
			}
		}
	}
}

// Whatever a server sends, the announced sizes that pass are within the bounds.
func TestReplyBoundsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bounds := &replyBounds{most: 1000}
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[$*%~>=!+:][0-9]{0,12}\r?\n`), rapid.StringMatching(`[a-z]{0,9}\r?\n?`), rapid.String(),
		)).Draw(t, "pieces")
		for _, piece := range pieces {
			err := bounds.follow([]byte(piece))
			if len(bounds.open) > maxReplyDepth+1 || err == nil && (bounds.size > 1000 || bounds.elements > maxReplyElements || bounds.text > 1002) {
				t.Fatalf("%q: %+v, %v", piece, bounds, err)
			}
		}
	})
}
