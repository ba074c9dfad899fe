package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"management.platform.sh/shared/state/store"
)

// format is the format of records. A record is one header line and the object, unchanged:
//
//	1 <revision> <created ms> <expires ms or -> <digest or -> <references or -> <owner>\n<object>
//
// References are uids, separated by commas. If a digest or a list of references begins with a dash, that dash is
// doubled. The owner is last because it may contain blanks. Scripts read the header with a pattern (lua/record.lua)
// and never look at the object. Source: ADR-0002.
const format = "1"

// none stands for an absent digest, expiry or list of references in a header.
const none = "-"

// milliseconds formats a time for headers, scores and arguments.
func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// optionalMilliseconds formats a time as milliseconds does, and the zero time as absent.
func optionalMilliseconds(t time.Time, absent string) string {
	if t.IsZero() {
		return absent
	}
	return milliseconds(t)
}

// digestToken formats a digest for headers, scripts and the digest index.
func digestToken(digest string) string { return token(digest) }

// referencesToken formats a list of uids for headers and scripts, without repetitions.
func referencesToken(uids []string) string {
	var distinct []string
	for _, uid := range uids {
		if !slices.Contains(distinct, uid) {
			distinct = append(distinct, uid)
		}
	}
	return token(strings.Join(distinct, ","))
}

// token formats a text for headers. It doubles a leading dash, so that a single dash can only mean none.
func token(text string) string {
	if text == "" {
		return none
	}
	if text[0] == '-' {
		return "-" + text
	}
	return text
}

func parseTime(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(ms).UTC(), nil
}

// decode reads a stored record. activity is "" for none. The object of the record shares the memory of raw, which the
// caller must not use for anything else: a copy of each object would be a quarter of the memory that a list allocates.
func decode(name, raw, activity string) (store.Record, error) {
	bad := func(why string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("reading record %q: %w: %s", name, store.ErrFormat, why)
	}
	header, object, ok := strings.Cut(raw, "\n")
	number, rest, _ := strings.Cut(header, " ")
	if !ok || !Reads(number) {
		return bad("this build reads format " + format)
	}
	var parts [5]string
	for i := range parts {
		if parts[i], rest, ok = strings.Cut(rest, " "); !ok {
			return bad("short header")
		}
	}
	record := store.Record{Name: name, Owner: rest}
	record.Object = unsafe.Slice(unsafe.StringData(object), len(object)) //nolint:gosec // no other text has these bytes
	var err error
	if record.Revision, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return bad("revision")
	}
	if record.Created, err = parseTime(parts[1]); err != nil {
		return bad("creation time")
	}
	if parts[2] != none {
		if record.Expires, err = parseTime(parts[2]); err != nil {
			return bad("expiry")
		}
	}
	if parts[3] != none {
		record.Digest = strings.TrimPrefix(parts[3], "-")
	}
	if parts[4] != none {
		record.References = strings.Split(strings.TrimPrefix(parts[4], "-"), ",")
	}
	if activity != "" {
		if record.Activity, err = parseTime(activity); err != nil {
			return bad("activity")
		}
	}
	return record, nil
}

// check refuses records that would break a header or an index. Callers validate long before, so an error
// here is a mistake in the program, and the contract has no error value for it.
func check(record store.Record) error {
	switch {
	case record.Name == "":
		return errors.New("writing record: the name is empty")
	case hasControl(record.Name):
		return fmt.Errorf("writing record %q: the name has a control character", record.Name)
	case hasControl(record.Owner):
		return fmt.Errorf("writing record %q: the owner %q has a control character", record.Name, record.Owner)
	case hasControl(record.Digest) || strings.Contains(record.Digest, " "):
		return fmt.Errorf("writing record %q: the digest has a blank or a control character", record.Name)
	case record.Created.IsZero():
		return fmt.Errorf("writing record %q: the creation time is zero", record.Name)
	case slices.ContainsFunc(record.References, func(uid string) bool { return !validReference(uid) }):
		return fmt.Errorf("writing record %q: a reference is empty, too long or has a blank, a comma or a control character", record.Name)
	}
	return nil
}

// maxReference is the maximum length of a referenced uid in bytes.
const maxReference = 128

func validReference(uid string) bool {
	return uid != "" && len(uid) <= maxReference && !hasControl(uid) && !strings.ContainsAny(uid, " ,")
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
