package frame

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"management.platform.sh/shared/limits"
)

// compressors are unused gzip writers, each of which takes about a megabyte. Like a kube-apiserver, they use the fastest level.
var compressors = sync.Pool{New: func() any {
	// Only an unknown level is an error.
	writer, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	return writer
}}

// compressedBody returns a writer for the body of a response of at least a number of bytes, which it compresses if the client asks for
// that and it is not compressed already. It sets the headers that say so, so it must be called before the headers are sent. Done sends
// what is buffered.
func compressedBody(w http.ResponseWriter, r *http.Request, size int) (out io.Writer, done func() error) {
	plain := parts{w}
	if size < limits.CompressedBytes || w.Header().Get("Content-Encoding") != "" {
		return plain, func() error { return nil }
	}
	header := w.Header()
	header.Add("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header.Values("Accept-Encoding")) {
		return plain, func() error { return nil }
	}
	header.Set("Content-Encoding", "gzip")
	header.Del("Content-Length")
	if tag := header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		// The bytes differ from those without compression.
		header.Set("ETag", "W/"+tag)
	}
	writer := compressors.Get().(*gzip.Writer)
	writer.Reset(plain)
	return writer, func() error {
		if err := writer.Close(); err != nil {
			// The server may still be sending what is in the writer: it is not used again.
			return err
		}
		writer.Reset(io.Discard)
		compressors.Put(writer)
		return nil
	}
}

// parts writes to a client that must receive each part in time.
type parts struct{ http.ResponseWriter }

func (p parts) Write(text []byte) (int, error) {
	if err := send(p.ResponseWriter, text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// acceptsGzip reports whether an Accept-Encoding header permits gzip. Source: RFC 9110, section 12.5.3.
func acceptsGzip(values []string) bool {
	wild := false
	for _, value := range values {
		for clause := range strings.SplitSeq(value, ",") {
			coding, params, _ := strings.Cut(clause, ";")
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "gzip", "x-gzip":
				return positive(params)
			case "*":
				wild = positive(params)
			}
		}
	}
	return wild
}

// positive reports whether the parameter q of a clause is above 0, which it is if it is absent.
func positive(params string) bool {
	name, value, _ := strings.Cut(params, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return true
	}
	quality, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && quality > 0
}
