package accesskey

import (
	"errors"
	"math"
	"strings"
	"sync"

	"management.platform.sh/shared/model/secret"
)

// minBits is the lowest result of EstimateBits at which a client may choose a text as a key. 32 random hexadecimal digits are
// worth about 120 bits, and a random UUID about 140. Source: ADR-0022.
const minBits = 90

// The parts of the estimate, in bits. Source: ADR-0022.
const (
	// minMatch is the shortest text that counts as a repetition. matchBits is the worth of a repetition, however long it is.
	minMatch  = 3
	matchBits = 6
)

// familiar are texts that people type: everything that occurs in them counts as a repetition. It is in lower case.
const familiar = "abcdefghijklmnopqrstuvwxyzabc 01234567890123 " +
	"qwertyuiopasdfghjklzxcvbnm qwertzuiopyxcvbnm qazwsxedcrfvtgbyhnujmikolp 1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p " +
	"!@#$%^&*() password passwort secret token access key admin administrator administration root user username login test " +
	"testing example sample changeme please default demo development production platform kubernetes cluster virtual " +
	"management welcome letmein iloveyou monkey dragon master hunter2 this that the and for with from your our own super very " +
	"secure correct horse battery staple quick brown fox jumps over lazy dog lorem ipsum dolor "

// known returns the text with which each text is compared: familiar forwards and backwards.
var known = sync.OnceValue(func() string { return familiar + reversed(familiar) })

// checkGuessable returns an error, which does not quote the key, if a key that a client brings is easy to guess.
func checkGuessable(bearer secret.String) error {
	if EstimateBits(bearer.Reveal()) < minBits {
		return errUnfit
	}
	return nil
}

// errUnfit is the answer to a client's text that cannot be a key because it is easy to guess, or because it is or was a key. The
// answer is the same for all reasons, so that it does not reveal the reason.
var errUnfit = errors.New("cannot be used: bring a random text, or leave it out and the server generates one")

// EstimateBits estimates how many bits an attacker must guess to find a text, with repetitions left out. A character that is not
// part of a repetition is worth as much as any character of its class. A part that occurred before in the text, or in known, or
// that continues a progression, is worth matchBits. Case is ignored. EstimateBits has no dictionary of a language, so it
// overrates sentences. Also are further texts that the attacker knows. Source: ADR-0022.
func EstimateBits(text string, also ...string) float64 {
	text = strings.ToLower(text)
	known := known() + strings.ToLower(strings.Join(also, " "))
	bits := 0.0
	for index := 0; index < len(text); {
		length := max(repetition(text, index, known), progression(text, index))
		if length < minMatch {
			bits += characterBits(text[index])
			index++
			continue
		}
		bits += min(matchBits, characterBits(text[index])*float64(length))
		index += length
	}
	return bits
}

// repetition returns the length of the longest part of a text that begins at a position and occurs earlier, or in known. The
// earlier part may overlap it, as in a row of one character.
func repetition(text string, at int, known string) int {
	longest := 0
	for longest < len(text)-at {
		next := text[at : at+longest+1]
		if !strings.Contains(text[:at+longest], next) && !strings.Contains(known, next) {
			break
		}
		longest++
	}
	return longest
}

// maxStep is the largest distance between the characters of a progression, such as 2 in a1b2c3.
const maxStep = 4

// progression returns the length of the longest part of a text that begins at a position and continues a row of characters with
// equal differences, such as 13579 or aabbcc.
func progression(text string, index int) int {
	longest := 0
	for step := 1; step <= maxStep; step++ {
		end := index
		for end < len(text) && end >= 2*step && text[end]-text[end-step] == text[end-step]-text[end-2*step] {
			end++
		}
		longest = max(longest, end-index)
	}
	return longest
}

// characterBits returns how many bits a single character is worth: as much as any character of its class.
func characterBits(c byte) float64 {
	switch {
	case c >= '0' && c <= '9':
		return math.Log2(10)
	case c >= 'a' && c <= 'z':
		return math.Log2(26)
	default:
		return math.Log2(32)
	}
}

func reversed(text string) string {
	turned := []byte(text)
	for i, j := 0, len(turned)-1; i < j; i, j = i+1, j-1 {
		turned[i], turned[j] = turned[j], turned[i]
	}
	return string(turned)
}
