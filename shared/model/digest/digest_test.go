package digest_test

import (
	"testing"

	"management.platform.sh/shared/model/digest"
)

// The state has such digests: a process of another release finds a record by the same name. The values are from another
// implementation of SHA-256.
func TestSum(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		texts []string
		want  string
	}{
		{nil, "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"},
		{[]string{"a"}, "0eb5b8d6f81bc677da8a08567cc4fa9a06a57e9ec8da85ed73a7f62727996002"},
		{[]string{"ab", "c"}, "a3cf6bea61056a6d02d636c94c747ebd6e596c79ce34d933282faf61c471a7b0"},
		{[]string{"a", "bc"}, "088cae1995ddf9c2a01e22dad3e7341ec247fa45efbb75a8b36fdd98ea7bfa11"},
		{[]string{`a" "b`}, "8715549fc3c05fdfb82b5e2d9cfffa293425c27bd99359041d6a2d78ea3ed7af"},
	} {
		if got := digest.Sum(row.texts...); got != row.want {
			t.Errorf("%q: %s, want %s", row.texts, got, row.want)
		}
	}
}
