package redisstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"
)

// packLimit is the maximum length of a text that is packed, in bytes. Bounds of pages count what is stored, and 500 texts of this
// length have the bytes of a page. Source: ADR-0043.
const packLimit = 2048

// A packed text stands for a text without control characters. Control characters in it are codes:
//
//	0x00 to 0x1b    a fragment
//	0x1c <byte>     another fragment
//	0x1d <16 bytes> a uid
//	0x1e <byte>     the uid with that number, counted from 0, which stands before
//	0x1f <4 bytes>  a time in seconds, as metadata has it
//
// Everything else stands for itself. Source: ADR-0043.
const (
	shortFragments = 0x1c
	codeFragment   = 0x1c
	codeUID        = 0x1d
	codeUIDAgain   = 0x1e
	codeTime       = 0x1f
	firstPlain     = 0x20
)

const (
	uidLength  = 36
	timeLength = len("2006-01-02T15:04:05Z")
	timeLayout = "2006-01-02T15:04:05Z"
)

// fragments belong to format 2: a fragment that is changed, removed or added changes the meaning of stored records. More of them need
// another format. Each has at least four bytes and begins with a bracket, a comma or a quote.
var fragments = []string{
	// The first ones have codes of one byte.
	`{"kind":"OwnedAccessKey","apiVersion":"management.platform.sh/v1","metadata":{"name":"`,
	`{"kind":"DirectClusterEndpointToken","apiVersion":"management.platform.sh/v1","metadata":{"name":"token-`,
	`","uid":"`,
	`","generation":1,"creationTimestamp":"`,
	`","labels":{"`,
	`","managedFields":[{"manager":"`,
	`"},"managedFields":[{"manager":"`,
	`","operation":"Update","apiVersion":"management.platform.sh/v1","time":"`,
	`","operation":"Apply","apiVersion":"management.platform.sh/v1","time":"`,
	`","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:`,
	`","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:`,
	`":{},"f:`,
	`":{},"f:displayName":{},"f:`,
	`":{}}},"f:spec":{"f:`,
	`":{}}}}]},"spec":{"displayName":"`,
	`":{}}}}]},"spec":{"`,
	`"},"status":{"createdBy":{"name":"`,
	`"},"lineage":[{"name":"`,
	`"}]},"splice":"`,
	`","ownerReferences":[{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","name":"`,
	`"}]},"spec":{"ttl":`,
	`},"status":{"expirationTimestamp":"`,
	`","accessKeyUID":"`,
	`","groups":["platform:`,
	`,"createdBy":{"name":"`,
	`","description":"`,
	`","type":"`,
	`","user":"`,
	// The others have two.
	`","generation":`,
	`","resourceVersion":"`,
	`,"creationTimestamp":"`,
	`","annotations":{"`,
	`"},"annotations":{"`,
	`","apiVersion":"management.platform.sh/v1","metadata":{"name":"`,
	`","apiVersion":"management.platform.sh/v1","metadata":{"generateName":"`,
	`","namespace":"`,
	`","finalizers":["`,
	`","kind":"OwnedAccessKey","name":"`,
	`"ownerReferences":[{"apiVersion":"`,
	`},{"manager":"`,
	`{"manager":"`,
	`","subresource":"status"}`,
	`,"fieldsType":"FieldsV1","fieldsV1":{"f:`,
	`":{"f:labels":{".":{},"f:`,
	`":{".":{},"f:`,
	`":{},"f:description":{},"f:displayName":{},"f:`,
	`":{},"f:description":{},"f:`,
	`"f:spec":{"f:`,
	`"f:status":{"f:`,
	`":{}}}}],`,
	`},"spec":{"displayName":"`,
	`"spec":{"displayName":"`,
	`,"spec":{"`,
	`},"scope":{"roles":[{"role":"`,
	`,"scope":{"roles":[{"role":"`,
	`,"scope":{"projects":[{"project":"`,
	`,"scope":{"virtualClusters":[{"project":"`,
	`"}],"projects":[{"project":"`,
	`"}],"virtualClusters":[{"project":"`,
	`","virtualCluster":"`,
	`"},{"project":"`,
	`"},{"role":"`,
	`"}]},"type":"`,
	`,"groups":["`,
	`","groups":["`,
	`,"type":"`,
	`","team":"`,
	`,"ttl":`,
	`","ttl":`,
	`},"status":{`,
	`"},"status":{`,
	`,"splice":"`,
	`,"bounds":true}`,
	`","platform:authenticated","platform:user:`,
	`"],"userAgent":"`,
	`","accessKey":"`,
	`"platform:admins"`,
	`"displayName":"`,
	`"description":"`,
	`"username":"`,
	`"true"`,
	`"false"`,
}

// fragment is one of fragments with its number.
type fragment struct {
	text   string
	number int
}

// fragmentsBy are the fragments by their first four bytes, the longest first.
var fragmentsBy = sync.OnceValue(func() map[uint32][]fragment {
	by := make(map[uint32][]fragment, len(fragments))
	for number, text := range fragments {
		key := binary.BigEndian.Uint32([]byte(text))
		by[key] = append(by[key], fragment{text, number})
	}
	for _, same := range by {
		slices.SortFunc(same, func(a, b fragment) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return by
})

// pack returns the packed form of a text, and false if it is stored as it is.
func pack(text []byte) ([]byte, bool) {
	if len(text) == 0 || len(text) > packLimit {
		return nil, false
	}
	by := fragmentsBy()
	packed := make([]byte, 0, len(text))
	var uids [][]byte
	for i := 0; i < len(text); {
		c := text[i]
		if c < firstPlain {
			return nil, false
		}
		if i > 0 && text[i-1] == '"' {
			if rest := text[i:]; len(rest) >= uidLength && isUID(rest[:uidLength]) {
				packed, uids = appendUID(packed, uids, rest[:uidLength])
				i += uidLength
				continue
			} else if seconds, ok := timeAt(rest); ok {
				packed = binary.BigEndian.AppendUint32(append(packed, codeTime), seconds)
				i += timeLength
				continue
			}
		}
		if number, length := fragmentAt(by, text[i:]); length > 0 {
			if number >= shortFragments {
				packed = append(packed, codeFragment, byte(number-shortFragments))
			} else {
				packed = append(packed, byte(number))
			}
			i += length
			continue
		}
		packed = append(packed, c)
		i++
	}
	return packed, len(packed) < len(text)
}

// fragmentAt returns the number and the length of the longest fragment with which a text begins; 0 and 0 if there is none.
func fragmentAt(by map[uint32][]fragment, text []byte) (number, length int) {
	switch text[0] {
	case '"', ',', '{', '}':
	default:
		return 0, 0
	}
	if len(text) < 4 {
		return 0, 0
	}
	for _, each := range by[binary.BigEndian.Uint32(text)] {
		if len(text) >= len(each.text) && string(text[:len(each.text)]) == each.text {
			return each.number, len(each.text)
		}
	}
	return 0, 0
}

const hexDigits = "0123456789abcdef"

// dash reports whether a uid has a dash at a position.
func dash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

func nibble(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	default:
		return 0, false
	}
}

func isUID(text []byte) bool {
	for i, c := range text {
		if dash(i) {
			if c != '-' {
				return false
			}
		} else if _, digit := nibble(c); !digit {
			return false
		}
	}
	return true
}

// appendUID appends the code of a uid. Those that stand before are known by number.
func appendUID(packed []byte, uids [][]byte, uid []byte) ([]byte, [][]byte) {
	for number, known := range uids {
		if string(known) == string(uid) {
			return append(packed, codeUIDAgain, byte(number)), uids
		}
	}
	packed = append(packed, codeUID)
	var high byte
	half := false
	for i, c := range uid {
		if dash(i) {
			continue
		}
		digit, _ := nibble(c)
		if half = !half; half {
			high = digit
		} else {
			packed = append(packed, high<<4|digit)
		}
	}
	if len(uids) < 256 {
		uids = append(uids, uid)
	}
	return packed, uids
}

// timeAt returns the time with which a text begins, in seconds; false if there is none that a code can stand for.
func timeAt(text []byte) (uint32, bool) {
	if len(text) < timeLength || text[4] != '-' || text[timeLength-1] != 'Z' {
		return 0, false
	}
	at, err := time.Parse(timeLayout, string(text[:timeLength]))
	seconds := at.Unix()
	if err != nil || seconds < 0 || seconds > 1<<32-1 {
		return 0, false
	}
	return uint32(seconds), true
}

var errPacked = errors.New("packed text")

// unpack returns the text for which a packed one stands. Length is the length of the text.
func unpack(packed string, length int) ([]byte, error) {
	if length > packLimit {
		return nil, errPacked
	}
	text := make([]byte, 0, length)
	var uids [packLimit / uidLength]int
	count := 0
	for i := 0; i < len(packed); {
		c := packed[i]
		i++
		// The bytes of the code that follow.
		more := 0
		switch c {
		case codeFragment, codeUIDAgain:
			more = 1
		case codeUID:
			more = 16
		case codeTime:
			more = 4
		}
		if len(packed)-i < more {
			return nil, errPacked
		}
		given := packed[i : i+more]
		i += more
		switch {
		case c >= firstPlain:
			// Most bytes stand for themselves, often many in a row.
			end := i
			for end < len(packed) && packed[end] >= firstPlain {
				end++
			}
			text = append(text, packed[i-1:end]...)
			i = end
		case c < shortFragments:
			text = append(text, fragments[c]...)
		case c == codeFragment:
			number := shortFragments + int(given[0])
			if number >= len(fragments) {
				return nil, errPacked
			}
			text = append(text, fragments[number]...)
		case c == codeUID:
			if count == len(uids) {
				return nil, errPacked
			}
			uids[count] = len(text)
			count++
			for j, next := 0, 0; j < uidLength; j++ {
				if dash(j) {
					text = append(text, '-')
					continue
				}
				digit := given[next/2] >> 4
				if next%2 == 1 {
					digit = given[next/2] & 15
				}
				text = append(text, hexDigits[digit])
				next++
			}
		case c == codeUIDAgain:
			if int(given[0]) >= count {
				return nil, errPacked
			}
			at := uids[given[0]]
			text = append(text, text[at:at+uidLength]...)
		default:
			seconds := binary.BigEndian.Uint32([]byte(given))
			text = time.Unix(int64(seconds), 0).UTC().AppendFormat(text, timeLayout)
		}
		// No code makes a text longer than length by much, so a wrong one ends soon.
		if len(text) > length {
			return nil, errPacked
		}
	}
	if len(text) != length {
		return nil, errPacked
	}
	return text, nil
}
