package audit

import (
	"strings"
	"testing"
)

// A URL in an event keeps no password, wherever it stands. Source: ADR-0015, ADR-0016.
func TestURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"url":"https://ana:hunter2@charts.example/x"}`:      `{"url":"https://***@charts.example/x"}`,
		`{"url":"https://ana:hun@ter2@charts.example"}`:       `{"url":"https://***@charts.example"}`,
		`{"url":"https://a.example/?a=b\u0026token=hunter2"}`: `{"url":"https://a.example/?a=b\u0026token=***"}`,
		`{"url":"https://a.example/b@1.0","c":"d@e"}`:         `{"url":"https://a.example/b@1.0","c":"d@e"}`,
	} {
		if got := string(mask([]byte(text), nil)); got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}
