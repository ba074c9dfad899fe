package operator

import (
	"strings"
	"testing"

	"management.platform.sh/local/doctor"
)

// On a terminal, the level of each line has a colour, so that the bad lines are found among the good ones. The columns are the same without colours.
func TestDoctorLines(t *testing.T) {
	t.Parallel()
	report := doctor.Report{}
	for _, level := range []doctor.Level{doctor.Good, doctor.Unknown, doctor.Warning, doctor.Critical} {
		report.Findings = append(report.Findings, doctor.Finding{Check: "state", Level: level, Is: "it is", Do: "mend it"})
	}
	coloured := string(lines(report, true))
	colours := map[string]bool{}
	for line := range strings.Lines(coloured) {
		colour, _, found := strings.Cut(line, "m")
		if !found || !strings.HasPrefix(colour, "\x1b[") || colours[colour] || !strings.Contains(line, "\x1b[0m  state ") {
			t.Errorf("%q", line)
		}
		colours[colour] = true
	}
	plain := string(lines(report, false))
	for colour := range colours {
		coloured = strings.ReplaceAll(coloured, colour+"m", "")
	}
	if strings.ReplaceAll(coloured, "\x1b[0m", "") != plain || strings.Contains(plain, "\x1b") || !strings.HasPrefix(plain, "ok        state          it is; to do: mend it\n") {
		t.Errorf("%s", plain)
	}
}
